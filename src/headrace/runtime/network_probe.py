"""Measure the links of a cluster's workers: bandwidth and latency of sampled pairs, the way the engine moves data."""

from __future__ import annotations

import asyncio
import os
import pickle
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from headrace.model.machines import MachineLinks
from headrace.runtime.asking import ask_workers

BUDGET = 12.0
"""Seconds after which no further pairs are measured."""
_SIZES = (1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
_INSIDE_SIZES = (1 << 18, 1 << 22)
"""Inside a machine smaller ones suffice, and a local run must not wait for its probe."""
_SILENT = 1.0
"""Seconds after which progress is shown."""
_RELIABLE = 0.08
"""A transfer that takes this many seconds is long enough to trust its rate."""
_LONG = 0.5
"""A transfer that takes this many seconds is not repeated."""
_PATIENCE = 8.0
"""Seconds after which a transfer is given up; the rate is then below what was asked for in that time."""
_ROUND_PATIENCE = 45.0
"""Seconds after which a worker that has not finished a round of measurements is given up."""
_RINGS = 3
_payload = b""
"""On a worker: random bytes, which the engine cannot compress."""


@dataclass(frozen=True, slots=True)
class PairRate:
    """A measured pair of workers."""

    latency: float
    bandwidth: float


def probe_links(
    client: Any,
    workers: Mapping[str, str],
    budget: float = BUDGET,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[MachineLinks, ...]:
    """The links of the machines on which these workers (name by address) run: O(machines) pairs, in bounded time.

    Each machine sends to up to three others and receives from as many, in rounds in which no machine takes part twice;
    its rate is that of its best pair, since its partners may be slower. Machines with several workers are measured
    inside as well. What the budget did not suffice for has no figure. After the first second, `say` is told about the
    progress.
    """
    machines = group_by_machine(workers)
    names = list(machines)
    first = [machines[name][0] for name in names]
    inside = {of[1]: of[0] for of in machines.values() if len(of) > 1}
    rounds = [pairs for offset in _offsets(len(names)) for pairs in _disjoint(len(names), offset)]
    began = time.monotonic()
    rates = _round(client, inside, _INSIDE_SIZES)
    for number, pairs in enumerate(rounds):
        passed = time.monotonic() - began
        if passed > budget:
            break
        if passed > _SILENT:
            say(f"measuring the links of {len(names)} machines: round {number + 1} of {len(rounds)}")
        rates |= _round(client, {first[target]: first[source] for source, target in pairs}, _SIZES)
    return tuple(_links(name, machines[name], rates) for name in names)


def group_by_machine(workers: Mapping[str, str]) -> dict[str, list[str]]:
    """Addresses of workers by machine, that is by the host part of the address; workers in order of their names.

    >>> group_by_machine({"tcp://10.0.0.1:5": "b", "tcp://10.0.0.1:4": "a", "tls://10.0.0.2:4": "c"})
    {'10.0.0.1': ['tcp://10.0.0.1:4', 'tcp://10.0.0.1:5'], '10.0.0.2': ['tls://10.0.0.2:4']}
    """
    machines: dict[str, list[str]] = {}
    for address in sorted(workers, key=lambda address: (workers[address], address)):
        machines.setdefault(machine_of(address), []).append(address)
    return dict(sorted(machines.items()))


def machine_of(address: str) -> str:
    """
    >>> machine_of("tls://10.0.0.1:4000"), machine_of("tcp://[::1]:4000"), machine_of("inproc://x/1/2")
    ('10.0.0.1', '::1', 'x')
    """
    from urllib.parse import urlsplit

    return urlsplit(address).hostname or address


def _offsets(machines: int) -> list[int]:
    """Distances in the ring of machines, well spread: all of them for up to four machines.

    >>> _offsets(1), _offsets(2), _offsets(4), _offsets(16)
    ([], [1], [1, 2, 3], [1, 6, 11])
    """
    return sorted({1 + k * (machines - 1) // _RINGS for k in range(_RINGS)}) if machines > 1 else []


def _disjoint(machines: int, offset: int) -> Iterable[list[tuple[int, int]]]:
    """The pairs (i, i + offset) of a ring, in rounds in which every machine occurs at most once.

    >>> list(_disjoint(4, 1)), list(_disjoint(2, 1))
    ([[(0, 1), (2, 3)], [(1, 2), (3, 0)]], [[(0, 1)], [(1, 0)]])
    """
    left = [(i, (i + offset) % machines) for i in range(machines)]
    while left:
        busy: set[int] = set()
        chosen = []
        for pair in left:
            if not busy & set(pair):
                chosen.append(pair)
                busy |= set(pair)
        left = [pair for pair in left if pair not in chosen]
        yield chosen


def _round(
    client: Any, source_of: Mapping[str, str], sizes: Sequence[int]
) -> dict[tuple[str, str], PairRate]:
    """Measure these pairs (source by target) at the same time; a pair that fails is left out."""
    if not source_of:
        return {}
    questions = dict.fromkeys(source_of, (dict(source_of), sizes))
    answers = ask_workers(client, _pull_from, questions, _ROUND_PATIENCE)
    return {
        (source_of[target], target): PairRate(*answer)
        for target, answer in answers.items()
        if isinstance(answer, tuple)
    }


async def _pull_from(
    source_of: Mapping[str, str], sizes: Sequence[int], dask_worker: Any
) -> tuple[float, float]:
    """On a worker: latency and bandwidth of fetching bytes from another one."""
    remote = dask_worker.rpc(source_of[dask_worker.address])
    await remote.run(function=pickle.dumps(prepare_bytes), args=pickle.dumps((sizes[-1],)))
    latency = min([await _timed(remote, 0) for _ in range(3)])
    rate = 0.0
    for size in sizes:
        try:
            seconds = await asyncio.wait_for(_timed(remote, size), _PATIENCE)
        except TimeoutError:
            return latency, rate or size / _PATIENCE
        rate = size / max(seconds - latency, 1e-6)
        if seconds >= _LONG:
            return latency, rate
        if seconds >= _RELIABLE:
            break
    again = await _timed(remote, size)  # a busy machine may have delayed the first one
    return latency, max(rate, size / max(again - latency, 1e-6))


async def _timed(remote: Any, size: int) -> float:
    began = time.perf_counter()
    await remote.run(function=pickle.dumps(random_bytes), args=pickle.dumps((size,)))
    return time.perf_counter() - began


def prepare_bytes(size: int) -> None:
    """Make the bytes that `random_bytes` returns, so that making them is not timed."""
    global _payload
    if len(_payload) < size:
        _payload = os.urandom(size)


def random_bytes(size: int) -> bytes:
    """Bytes that cannot be compressed, the same ones each time.

    >>> prepare_bytes(100)
    >>> len(random_bytes(10))
    10
    """
    return _payload[:size]


def _links(machine: str, workers: Sequence[str], rates: Mapping[tuple[str, str], PairRate]) -> MachineLinks:
    out = [rate for (source, _), rate in rates.items() if source == workers[0]]
    into = [rate for (_, target), rate in rates.items() if target == workers[0]]
    inside = rates.get((workers[0], workers[1])) if len(workers) > 1 else None
    if inside is not None:
        out.remove(inside)
    latencies = [rate.latency for rate in (*out, *into)]
    return MachineLinks(
        machine,
        up=max((rate.bandwidth for rate in out), default=None),
        down=max((rate.bandwidth for rate in into), default=None),
        latency=median(latencies) if latencies else None,
        inside=None if inside is None else inside.bandwidth,
        inside_latency=None if inside is None else inside.latency,
    )
