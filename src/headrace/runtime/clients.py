"""Which objects are clients of the engine, or clusters; the engine is not loaded for this question."""

from __future__ import annotations

from typing import Any

from headrace.model.arguments import wrong_argument
from headrace.model.errors import UsageError


def is_client(given: Any) -> bool:
    """
    >>> is_client("tcp://127.0.0.1:8786")
    False
    """
    return any(base.__module__ == "distributed.client" for base in type(given).__mro__)


def require_connected(client: Any) -> None:
    """Raise an error if a client has been closed, or is asynchronous."""
    if client.asynchronous:
        raise UsageError("the client is asynchronous", hint="use Client(..., asynchronous=False)")
    if client.status in ("closing", "closed"):
        raise UsageError("the client is closed", hint="connect a new distributed.Client")


def require_cluster(given: Any) -> None:
    """Raise an error unless this is an open `Cluster`."""
    if not any(base.__module__ == "headrace.runtime.cluster" for base in type(given).__mro__):
        hint = "give `local`, an address such as tls://host:port, or a distributed.Client"
        raise wrong_argument("cluster", given, hint)
