"""After a task has failed for good: tasks that are running may finish, and no other is started.

What they make is kept, so that a resumed run executes only what failed and what follows.
"""

from __future__ import annotations

import asyncio
import math
import pickle
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from distributed.metrics import time as engine_time

from headrace.runtime.dask_pins import NOWHERE

if TYPE_CHECKING:
    from headrace.runtime.graph import Key, Layout

_ANSWER_SECONDS = 5.0
"""How long to wait for workers to say what they execute."""
_OVER = frozenset({"memory", "erred", "forgotten"})
_EXECUTING = frozenset({"executing", "long-running"})
_WAITING = frozenset({"waiting", "ready", "constrained"})
"""States of tasks that a worker was given and has not begun."""


class Draining:
    """Keeps the tasks of a run from starting, except those that have run before and are made again after a loss."""

    def __init__(
        self, scheduler: Any, layout: Layout, token: str, pending: dict[str, float], finished: Collection[str]
    ) -> None:
        self.scheduler = scheduler
        self.layout = layout
        self.token = token
        self.pending = pending
        """Tasks that may not start yet, with the time when they may."""
        self.finished = finished
        self.settled = False
        """Whether everything that the workers were given, and have not begun, is taken back."""

    async def begin(self) -> None:
        """Hold back all tasks but those that workers execute: O(tasks)."""
        self._withhold(None)
        executing = await self._executing()
        self._withhold(executing)
        self.settled = True

    def _withhold(self, executing: set[Key] | None) -> None:
        """Tasks that workers were given are taken back unless they are executed; None: that is not known yet."""
        moves: dict[Key, str] = {}
        for key, task in self.layout.tasks.items():
            state = self.scheduler.tasks.get(key)
            if state is None or state.state in _OVER:
                continue
            if state.state == "processing" and (executing is None or key in executing):
                continue
            if task not in self.finished:
                self.pending[task] = math.inf
                state.worker_restrictions = {NOWHERE}
                state.loose_restrictions = False
            elif state.state == "queued":
                continue
            if state.state in ("processing", "queued"):  # its worker has given it back
                moves[key] = "released"
        if moves:
            self.scheduler.transitions(moves, stimulus_id=f"headrace-failed-{engine_time()}")

    async def _executing(self) -> set[Key]:
        """Keys of the run that workers execute, as they say themselves; their last heartbeat may be old."""
        message = {
            "op": "run",
            "function": pickle.dumps(give_back),
            "args": pickle.dumps((self.token,)),
            "wait": True,
        }
        answers: dict[str, Any] = {}
        with suppress(Exception):  # a worker that cannot be reached is about to be noticed
            asked = self.scheduler.broadcast(msg=message, on_error="return")
            answers = await asyncio.wait_for(asked, _ANSWER_SECONDS)
        found: set[Key] = set()
        for address, worker in list(self.scheduler.workers.items()):
            said = _result(answers.get(address))
            found.update([state.key for state in worker.executing] if said is None else said)
        return found


def give_back(token: str, dask_worker: Any) -> list[tuple[str, str]]:
    """On a worker: drop the tasks of a run that it has not begun; returns the keys of the run that it executes.

    Both happen at once, in the worker's loop: no task can begin in between.
    """
    from distributed.worker_state_machine import FreeKeysEvent

    waiting, executing = [], []
    for key, state in dask_worker.state.tasks.items():
        if not isinstance(key, tuple) or not str(key[0]).endswith(token):
            continue
        if state.state in _EXECUTING:
            executing.append(key)
        elif state.state in _WAITING and not key[0].startswith("headrace."):  # those are our own, and short
            waiting.append(key)
    if waiting:
        dask_worker.handle_stimulus(
            FreeKeysEvent(keys=waiting, stimulus_id=f"headrace-failed-{engine_time()}")
        )
    return executing


def _result(answer: Any) -> list[Key] | None:
    """What a function has returned on a worker; None if it was not reached."""
    from distributed.protocol.serialize import Serialized, deserialize

    if not isinstance(answer, dict) or answer.get("status") != "OK":
        return None
    value = answer.get("result")
    if isinstance(value, Serialized):
        value = deserialize(value.header, value.frames)
    return [(str(first), str(second)) for first, second in value or ()]
