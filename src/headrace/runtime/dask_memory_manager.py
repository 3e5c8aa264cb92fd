"""The engine's active memory manager is off while a run makes decisions: it would drop copies that a plan relies on."""

from __future__ import annotations

from typing import Any

_USERS = "headrace-without-memory-manager"


def keep_manager_off(scheduler: Any) -> bool:
    """Stop the manager; returns whether this run has to call `let_manager_on` later."""
    manager = scheduler.extensions.get("amm")
    users = scheduler.extensions.get(_USERS, 0)
    if manager is None or (users == 0 and not manager.running):
        return False
    scheduler.extensions[_USERS] = users + 1
    manager.stop()
    return True


def let_manager_on(scheduler: Any) -> None:
    """Start the manager again when the last run that stopped it has ended."""
    users = scheduler.extensions.pop(_USERS, 0) - 1
    if users > 0:
        scheduler.extensions[_USERS] = users
    else:
        scheduler.extensions["amm"].start()
