"""Which objects are clients of the engine, or clusters; the engine is not loaded for this question."""

from __future__ import annotations

from typing import Any

from headrace.model.arguments import wrong_argument


def is_client(given: Any) -> bool:
    """
    >>> is_client("tcp://127.0.0.1:8786")
    False
    """
    return any(base.__module__ == "distributed.client" for base in type(given).__mro__)


def require_cluster(given: Any) -> None:
    """Raise an error unless this is an open `Cluster`."""
    if not any(base.__module__ == "headrace.runtime.cluster" for base in type(given).__mro__):
        hint = "give `local`, an address such as tls://host:port, or a distributed.Client"
        raise wrong_argument("cluster", given, hint)
