"""Which jobs to start now and where: in the order of their ranks, each on the host where it finishes first.

A job whose best host is busy waits for it; it then counts as work of that host for the jobs after it. So a slow host
gets a job only if the job would finish there before it could on a faster one. There is neither a clock nor I/O in here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_UNSURE = 0.05
"""Of a job that should have ended by now, at least this share of its time is left."""


_NOTHING: Mapping[str, int] = {}


def _free_from(has: float, used: Sequence[tuple[float, float]], needed: float, now: float) -> float:
    """When so much of something is free; inf if there is not so much."""
    if needed <= 0:  # others may wait for more than there is
        return now
    if needed > has:
        return float("inf")
    free, at = has - sum(amount for _, amount in used), now
    for end, amount in sorted(used):
        if free >= needed:
            break
        free += amount
        at = max(at, end)
    return at


@dataclass
class HostState:
    """A host and when its cores become free."""

    name: str
    speed: float
    cores: int
    busy: list[tuple[float, int]] = field(default_factory=list)
    """End and cores of each job that runs there, or waits for it."""
    room: Mapping[str, float] = field(default_factory=dict)
    """How much it has of resources of Snakemake, such as `mem_mb`; any amount of others."""
    held: list[tuple[float, Mapping[str, int]]] = field(default_factory=list)
    """End and resources of each of these jobs."""

    def free_at(self, cores: int, now: float, resources: Mapping[str, int] = _NOTHING) -> float:
        """When so many cores, and so much of resources, are free; inf if there is not so much. O(jobs log jobs).

        >>> HostState("h", 1.0, 4, [(10.0, 2), (5.0, 1)]).free_at(3, 0.0)
        10.0
        >>> HostState("h", 1.0, 4, room={"gpu": 1}, held=[(7.0, {"gpu": 1})]).free_at(1, 0.0, {"gpu": 1})
        7.0
        """
        at = _free_from(self.cores, self.busy, cores, now)
        for name, has in self.room.items():
            used = [(end, needs.get(name, 0)) for end, needs in self.held]
            at = max(at, _free_from(has, used, resources.get(name, 0), now))
        return at


@dataclass
class Placing:
    """A job that was started, and where."""

    job: Any
    host: str
    cores: int
    finish: float
    """When it should end."""
    started: float = 0.0
    resources: Mapping[str, int] = field(default_factory=dict)

    def expected_end(self, now: float) -> float:
        """When it will end: a job that is late is expected to take as long again as it is late."""
        lasts = self.finish - self.started
        return max(self.finish, now + max(now - self.finish, 0.0), now + _UNSURE * lasts)


@dataclass
class Wish:
    """A job that could start."""

    job: Any
    cores: int
    resources: Mapping[str, int]
    seconds: Callable[[HostState], float]
    hosts: Sequence[HostState]


def place(
    wishes: Sequence[Wish],
    hosts: Sequence[HostState],
    now: float,
    available: Mapping[str, int | str],
    late: Callable[[], bool] = lambda: False,
) -> list[Placing]:
    """The jobs to start now, with their hosts; never more than the resources that are available.

    `late` ends the search: what was found until then is returned. O(jobs * hosts * jobs of a host).
    """
    left = {name: value for name, value in available.items() if isinstance(value, int)}
    placed: list[Placing] = []
    for wish in wishes:
        if left.get("_cores", 1) <= 0 or (placed and late()):
            break
        found = _best(wish, now)
        if found is None:  # larger than any host: it needs no host, only resources
            if _fits(wish, left):
                placed.append(_take(wish, "", now + 1.0, left))
            continue
        host, starts, finish = found
        host.busy.append((finish, wish.cores))
        host.held.append((finish, wish.resources))
        if starts <= now and _fits(wish, left):
            placed.append(_take(wish, host.name, finish, left))
    return placed


def _best(wish: Wish, now: float) -> tuple[HostState, float, float] | None:
    best: tuple[HostState, float, float] | None = None
    for host in wish.hosts:
        starts = host.free_at(wish.cores, now, wish.resources)
        finish = starts + wish.seconds(host)
        if finish < (float("inf") if best is None else best[2]):
            best = (host, starts, finish)
    return best


def _fits(wish: Wish, left: Mapping[str, int]) -> bool:
    return all(wish.resources.get(name, 0) <= value for name, value in left.items())


def _take(wish: Wish, host: str, finish: float, left: dict[str, int]) -> Placing:
    for name in left:
        left[name] -= wish.resources.get(name, 0)
    return Placing(wish.job, host, wish.cores, finish, resources=wish.resources)


def upward_ranks(work: Mapping[Any, float], inputs: Mapping[Any, Sequence[Any]]) -> dict[Any, float]:
    """The longest way from each job to the end, itself included; O(jobs + dependencies).

    >>> upward_ranks({"a": 1.0, "b": 2.0}, {"a": [], "b": ["a"]})
    {'b': 2.0, 'a': 3.0}
    """
    readers = dict.fromkeys(work, 0)
    for given in inputs.values():
        for job in given:
            readers[job] += 1
    rank = dict.fromkeys(work, 0.0)
    ranks: dict[Any, float] = {}
    ready = [job for job, count in readers.items() if count == 0]
    while ready:
        job = ready.pop()
        ranks[job] = rank[job] + work[job]
        for earlier in inputs[job]:
            rank[earlier] = max(rank[earlier], ranks[job])
            readers[earlier] -= 1
            if readers[earlier] == 0:
                ready.append(earlier)
    return ranks
