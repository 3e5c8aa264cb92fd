"""Work that takes longer than a request: it is done in a thread, and the feed tells how far it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.model.errors import HeadraceError, UsageError
from headrace.ui.endpoint import Endpoint, number_of
from headrace.ui.feed import Feed

if TYPE_CHECKING:
    from headrace.model.deployment import Deployment

MOST_RUNNING = 4
MOST_KEPT = 32
_PAUSE = 0.2
"""Least seconds between two reports of progress."""


class Stopped(Exception):
    """The user does not want to wait any longer."""


@dataclass
class Job:
    """A piece of work, and what came of it."""

    number: int
    kind: str
    feed: Feed
    status: str = "running"
    answer: dict[str, Any] = field(default_factory=dict)
    deployment: Deployment | None = None
    """Of a planned deployment, to be carried out or saved."""
    stopped: bool = False
    _told: float = 0.0

    def say(self, text: str) -> None:
        """Tell how far the work is; raises Stopped once the user has asked for that."""
        if self.stopped:
            raise Stopped
        if time.monotonic() - self._told >= _PAUSE:
            self._told = time.monotonic()
            self.feed.publish("job", {"job": self.number, "status": "running", "said": text[:500]})

    def facts(self) -> dict[str, Any]:
        return {"job": self.number, "kind": self.kind, "status": self.status, **self.answer}


class Jobs:
    """All work of a page; the oldest that is done is forgotten first."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._jobs: dict[int, Job] = {}
        self._lock = threading.Lock()
        self._next = 1

    def start(self, kind: str, work: Callable[[Job], dict[str, Any]]) -> dict[str, Any]:
        """Begin, in a thread; what `work` returns is the answer of the job."""
        with self._lock:
            if sum(one.status == "running" for one in self._jobs.values()) >= MOST_RUNNING:
                raise UsageError(f"{MOST_RUNNING} jobs are being done", hint="wait for one of them")
            job = Job(self._next, kind, self._feed)
            self._next += 1
            self._jobs[job.number] = job
            for old in [n for n, one in self._jobs.items() if one.status != "running"][:-MOST_KEPT]:
                del self._jobs[old]
        threading.Thread(target=self._do, args=(job, work), daemon=True).start()
        return job.facts()

    def find(self, number: int) -> Job:
        if number not in self._jobs:
            raise UsageError(f"there is no job {number}", hint="start it again")
        return self._jobs[number]

    def stop(self, number: int) -> dict[str, Any]:
        """Ask a job to end; it does when it next tells how far it is."""
        job = self.find(number)
        job.stopped = True
        return job.facts()

    def _do(self, job: Job, work: Callable[[Job], dict[str, Any]]) -> None:
        try:
            job.answer = work(job)
            job.status = "done"
        except Stopped:
            job.status = "stopped"
        except HeadraceError as error:
            job.answer, job.status = {"error": str(error)}, "failed"
        except Exception as error:
            # A program of the user's can raise anything; the page must hear of it.
            job.answer, job.status = {"error": f"{type(error).__name__}: {error}"}, "failed"
        self._feed.publish("job", {"job": job.number, "status": job.status})


JOB_ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/jobs/{job}",
        "A deployment or a simulation, or how far it is",
        lambda s, p, b: s.jobs.find(number_of(p, "job")).facts(),
    ),
    Endpoint(
        "POST",
        "/api/jobs/{job}/stop",
        "Ask a job to end",
        lambda s, p, b: s.jobs.stop(number_of(p, "job")),
        {},
    ),
)
