"""The faults of `bench.chaos`: what is done to a cluster while a program runs there."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bench.chaos_clusters import Ground, Namespaces, address_of

_LONGEST_PAUSE = 0.8
"""Seconds between two faults, at most."""


@dataclass
class Chaos:
    """Disturbs one cluster from a thread of its own until told to stop; at least one worker is always left alone."""

    ground: Ground
    rng: random.Random
    faults: Sequence[str]
    """What to do, in this order."""
    spaces: Namespaces | None = None
    did: list[str] = field(default_factory=list)
    out: set[str] = field(default_factory=set)
    """Workers that are gone, stopped, paused or cut off."""
    stopped: set[int] = field(default_factory=set)
    """Processes that are stopped."""
    over: threading.Event = field(default_factory=threading.Event)
    _mending: list[threading.Thread] = field(default_factory=list)

    def begin(self) -> None:
        """Start to disturb."""
        self._thread = threading.Thread(target=self._disturb, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Disturb no more; stopped processes continue, so that they can end."""
        self.over.set()
        if hasattr(self, "_thread"):
            self._thread.join(30)
        for thread in self._mending:
            thread.join(10)
        for pid in self.stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _disturb(self) -> None:
        with suppress(Exception), self.ground.client() as self.client:  # the cluster may be closing
            for number, what in enumerate(self.faults):
                if self.over.wait(self.rng.uniform(0.0, _LONGEST_PAUSE)):
                    return
                with suppress(Exception):
                    if getattr(self, f"_{what}")(number):
                        self.did.append(what)

    def _victim(self, others: int = 1) -> str:
        """A worker that may go: so many others live and are left alone."""
        there = {str(info["name"]) for info in self.client.scheduler_info(n_workers=-1)["workers"].values()}
        able = sorted(there - self.out)
        if len(able) <= others:
            return ""
        name = self.rng.choice(able)
        self.out.add(name)
        return name

    def _later(self, seconds: tuple[float, float], action: Callable[[], None], done: str = "") -> None:
        """Do something after a while, or when the run is over."""
        pause = self.rng.uniform(*seconds)

        def act() -> None:
            early = self.over.wait(pause)
            with suppress(Exception):
                action()
                if done and not early:
                    self.did.append(done)

        self._mending.append(threading.Thread(target=act, daemon=True))
        self._mending[-1].start()

    # One method for each fault: whether it was done.

    def _kill(self, _: int) -> bool:
        name = self._victim()
        if name:
            os.kill(self.ground.pid(name), signal.SIGKILL)
        return bool(name)

    def _stop(self, _: int) -> bool:
        name = self._victim()
        if name:
            pid = self.ground.pid(name)
            self.stopped.add(pid)
            os.kill(pid, signal.SIGSTOP)
            if self.rng.random() < 0.5:
                self._later((1.0, 8.0), lambda: os.kill(pid, signal.SIGCONT), "continue")
        return bool(name)

    def _join(self, number: int) -> bool:
        self.ground.start_worker(f"new{number}")
        return True

    def _retire(self, _: int) -> bool:
        name = self._victim()
        if name:
            self.client.retire_workers([address_of(self.client, name)], close_workers=True)
        return bool(name)

    def _restart(self, _: int) -> bool:
        if self.out:  # all others restart: one that does not answer would be waited for
            return False
        self.client.restart(timeout=20, wait_for_workers=False)
        return True

    def _pause(self, _: int) -> bool:
        name = self._victim()
        if name:
            address = address_of(self.client, name)
            self.client.run(set_paused, True, workers=[address])
            self._later(
                (0.5, 5.0),
                lambda: self.client.run(set_paused, False, workers=[address]),
                "continue after pause",
            )
        return bool(name)

    def _cut(self, _: int) -> bool:
        name = self._victim()
        if name and self.spaces is not None:
            spaces, number = self.spaces, self.ground.names().index(name)
            spaces.cut(number)
            if self.rng.random() < 0.5:
                self._later((1.0, 8.0), lambda: spaces.mend(number), "mend")
        return bool(name)

    def _part(self, _: int) -> bool:
        """Two workers cannot reach each other; a third one, and the scheduler, reach both."""
        if self.spaces is None:
            return False
        one, other = self.rng.sample(range(len(self.ground.names())), 2)
        self.spaces.part(one, other)
        return True

    def _scheduler(self, _: int) -> bool:
        os.kill(self.ground.scheduler.pid, signal.SIGKILL)  # type: ignore[attr-defined]
        self.killed_at = time.monotonic()
        return True

    def _freeze(self, _: int) -> bool:
        """The scheduler is there, but does nothing any more."""
        os.kill(self.ground.scheduler.pid, signal.SIGSTOP)  # type: ignore[attr-defined]
        self.killed_at = time.monotonic()
        return True


def set_paused(paused: bool, dask_worker: Any) -> None:
    """On a worker: have its memory manager find that memory is short, so that it takes no more tasks; or not."""
    dask_worker.memory_manager.memory_pause_fraction = 1e-9 if paused else False
    if not paused:
        from distributed.core import Status

        dask_worker.status = Status.running
