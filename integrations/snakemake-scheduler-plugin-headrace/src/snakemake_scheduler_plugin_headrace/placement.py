"""Which jobs to start now and where: in the order of their ranks, each on the host where it finishes first.

A job whose best host is busy waits for it; it then counts as work of that host for the jobs after it. So a slow host
gets a job only if the job would finish there before it could on a faster one. A job that fits no host has the one that
comes closest for itself. There is neither a clock nor I/O in here.
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

    def lacks(self, cores: int, resources: Mapping[str, int]) -> dict[str, float]:
        """What it has too little of, even when idle, and how much it has.

        >>> HostState("h", 1.0, 4, room={"mem_mb": 4000.0}).lacks(8, {"mem_mb": 3000, "disk_mb": 10})
        {'threads': 4}
        """
        has: dict[str, float] = {"threads": self.cores, **self.room}
        needs = {**resources, "threads": cores}
        return {name: amount for name, amount in has.items() if needs.get(name, 0) > amount}


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
    alone: bool = False
    """It fits no host: whatever its host has is taken."""

    def occupy(self, host: HostState, until: float) -> None:
        """Count it as work of its host."""
        host.busy.append((until, host.cores if self.alone else self.cores))
        taken = {name: int(has) for name, has in host.room.items()} if self.alone else self.resources
        host.held.append((until, taken))

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
        if not wish.hosts:  # its host is none of ours: it needs only resources
            if _fits(wish, left):
                placed.append(_take(_placing(wish, "", now + 1.0), left))
            continue
        found = _best(wish, now)
        host, starts, finish = found or _alone(wish, now)
        placing = _placing(wish, host.name, finish, alone=found is None)
        placing.occupy(host, finish)
        if starts <= now and _fits(wish, left):
            placed.append(_take(placing, left))
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


def closest(hosts: Sequence[HostState], cores: int, resources: Mapping[str, int]) -> HostState:
    """The host that lacks the smallest share of what a job needs; the fastest of equal ones.

    >>> hosts = [HostState("a", 2.0, 4, room={"mem_mb": 1000}), HostState("b", 1.0, 4, room={"mem_mb": 4000})]
    >>> closest(hosts, 1, {"mem_mb": 9000}).name
    'b'
    """
    needs = {**resources, "threads": cores}

    def missing(host: HostState) -> float:
        return sum(1 - has / needs[name] for name, has in host.lacks(cores, resources).items())

    return min(hosts, key=lambda host: (missing(host), -host.speed))


def shortage(
    hosts: Sequence[HostState], cores: int, resources: Mapping[str, int]
) -> tuple[dict[str, int], HostState, dict[str, float]] | None:
    """What a job needs that no host has, the host that comes closest, and what that has; None if the job fits one."""
    lacking = [host.lacks(cores, resources) for host in hosts]
    if not lacking or not all(lacking):
        return None
    host = closest(hosts, cores, resources)
    named = host.lacks(cores, resources)
    if not all(named.keys() & lacks.keys() for lacks in lacking):  # each is there, but not on one host
        named = {name: 0.0 for lacks in lacking for name in lacks}
    needs = {**resources, "threads": cores}
    has: dict[str, float] = {"threads": host.cores, **host.room}
    return {name: needs[name] for name in named}, host, {name: has[name] for name in named if name in has}


def _alone(wish: Wish, now: float) -> tuple[HostState, float, float]:
    host = closest(wish.hosts, wish.cores, wish.resources)
    starts = max((end for end, _ in host.busy), default=now)
    return host, max(starts, now), max(starts, now) + wish.seconds(host)


def _placing(wish: Wish, host: str, finish: float, *, alone: bool = False) -> Placing:
    return Placing(wish.job, host, wish.cores, finish, resources=wish.resources, alone=alone)


def _take(placing: Placing, left: dict[str, int]) -> Placing:
    for name in left:
        left[name] -= placing.resources.get(name, 0)
    return placing


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
