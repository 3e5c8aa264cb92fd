"""Whether the processes of a cluster have the same headrace: asked before anything of it is sent to them."""

from __future__ import annotations

import sys
from typing import Any

from headrace.model.errors import HeadraceError
from headrace.runtime.asking import ask_workers

_VERSION = "__import__('importlib.util').util.find_spec('headrace') and __import__('headrace').__version__"
"""Evaluated there, since a function of this package cannot be loaded where it is missing; None if it is."""


def own_version() -> str:
    """The version of the package that this module belongs to."""
    return str(sys.modules[__name__.partition(".")[0]].__version__)


def require_headrace(client: Any, where: str = "cluster") -> None:
    """Raise an error if the scheduler or a worker of a cluster lacks headrace, or has another version.

    Workers that do not answer are left out.
    """
    workers = client.scheduler_info(n_workers=-1)["workers"]
    found = {"the scheduler": client.run_on_scheduler(eval, _VERSION)}
    for address, version in ask_workers(client, eval, dict.fromkeys(workers, (_VERSION,))).items():
        found[f"worker {workers[address]['name']}"] = version
    _require_same(found, where)


def require_on_scheduler(client: Any, where: str) -> None:
    """As `require_headrace`, but of the scheduler alone."""
    _require_same({"the scheduler": client.run_on_scheduler(eval, _VERSION)}, where)


def _require_same(found: dict[str, str | None], where: str) -> None:
    for name, version in found.items():
        if version != own_version():
            raise HeadraceError(
                f"headrace is not installed for {name}"
                if version is None
                else f"{name} has headrace {version}, and here it is {own_version()}",
                where=where,
                hint="install the same version of headrace for the scheduler and the workers",
            )
