"""Retries: how often a task is tried again after a failure, when, and where not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.runtime.run_policy import DEFAULT_POLICY, RunPolicy

if TYPE_CHECKING:
    from headrace.model.program import Program

_LONGEST_PAUSE = 300.0
_ENGINE_RETRIES = 3
"""How often a task is tried again that failed before any of its own code ran."""


class Retries:
    """The attempts of all tasks of a run; only failures are counted, not executions repeated after a loss.

    >>> from headrace.model.program import Program
    >>> program = Program()
    >>> _ = program.task(abs, name="t", retries=2)
    >>> retries = Retries(program, RunPolicy(backoff=0.5))
    >>> [retries.pause("t", host) for host in ("w0", "w1", "w0")]
    [0.5, 1.0, None]
    >>> retries.attempts("t"), retries.preferred("t", ["w0", "w1", "w2"]), retries.preferred("t", ["w0", "w1"])
    (3, ['w2'], ['w1'])
    >>> [Retries().pause("t", "w0", by_engine=by_engine) is None for by_engine in (True, False)]
    [False, True]
    """

    def __init__(self, program: Program | None = None, policy: RunPolicy = DEFAULT_POLICY) -> None:
        self._most = policy.retries
        self._backoff = policy.backoff
        tasks = () if program is None else program.tasks.values()
        self._own = {task.name: task.retries for task in tasks if task.retries is not None}
        self._failed_on: dict[str, list[str]] = {}
        self._engine_failed: dict[str, int] = {}
        self.waiting: set[str] = set()
        """Tasks that will be tried again after a pause."""

    def pause(
        self, task: str, host: str, *, poisonous: bool = False, by_engine: bool = False
    ) -> float | None:
        """Note a failure; return the seconds until the next attempt, or None if there is none.

        A task that kills workers is not tried again. One that failed `by_engine`, before any of its own code ran, is
        tried again without regard to what the user permits, a few times.
        """
        failed = self._failed_on.setdefault(task, [])
        failed.append(host)
        free = self._engine_failed[task] = self._engine_failed.get(task, 0) + by_engine
        most = self._own.get(task, self._most) + min(free, _ENGINE_RETRIES)
        if poisonous or len(failed) > most:
            return None
        self.waiting.add(task)
        return float(min(_LONGEST_PAUSE, self._backoff * 2 ** min(60, len(failed) - 1)))

    def resumed(self, task: str) -> None:
        """The pause of a task is over."""
        self.waiting.discard(task)

    def attempts(self, task: str) -> int:
        """How many attempts have failed."""
        return len(self._failed_on.get(task, ()))

    def preferred(self, task: str, hosts: Iterable[str]) -> list[str]:
        """Those of the hosts on which the task has failed least often, without the last one if there are others."""
        failed, hosts = self._failed_on.get(task, []), list(hosts)
        least = min((failed.count(host) for host in hosts), default=0)
        rarest = [host for host in hosts if failed.count(host) == least]
        return [host for host in rarest if host not in failed[-1:]] or rarest
