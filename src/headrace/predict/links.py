"""Bandwidth and latency of links, from the transfers of earlier runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from headrace.model.machines import MachineLinks

LARGE, SMALL = 256e3, 16e3
"""Bytes from which a transfer tells the bandwidth, and up to which it tells the latency."""
ENOUGH = 5
"""Transfers from which a figure counts."""
_UNDISTURBED = 0.8
"""Transfers share links with others: the bandwidth is a high quantile of their rates."""
_SHARE = 0.5
"""Weight of transfers against a probe, in logarithms."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer between two hosts; the items of one request have the same start and finish."""

    source: str
    target: str
    start: float
    finish: float
    size: float
    run: str = ""


@dataclass(frozen=True, eq=False)
class Refined:
    """Links after transfers were taken into account, and how many of them were used."""

    links: tuple[MachineLinks, ...]
    transfers: int


def refine_links(
    links: Iterable[MachineLinks], transfers: Iterable[Transfer], machine_of: Mapping[str, str]
) -> Refined:
    """Links with figures improved by transfers between hosts; `machine_of` gives the machine of each host.

    A port is as fast as its best pair: most of its transfers may have been slowed down by the other end. Where a probe
    and transfers both have a figure, it is their geometric mean. O(transfers log transfers).

    >>> seen = [Transfer("w0", "w1", float(k), k + 0.1, 1e6) for k in range(5)]
    >>> refined = refine_links([MachineLinks("here")], seen, {"w0": "here", "w1": "here"})
    >>> refined.transfers, round(refined.links[0].inside)
    (5, 10000000)
    """
    requests = _requests(transfers, machine_of)
    latency, fast = _latencies(requests), _rates(requests)
    refined = []
    for link in links:
        out = [rate for (a, b), rate in fast.items() if a == link.machine != b]
        into = [rate for (a, b), rate in fast.items() if b == link.machine != a]
        inside = fast.get((link.machine, link.machine))
        refined.append(
            replace(
                link,
                up=_blended(link.up, max(out, default=None)),
                down=_blended(link.down, max(into, default=None)),
                inside=_blended(link.inside, inside),
                latency=_blended(link.latency, latency.get(False)),
                inside_latency=_blended(link.inside_latency, latency.get(True)),
            )
        )
    return Refined(tuple(refined), len(requests))


def later(link: MachineLinks, seconds: float) -> MachineLinks:
    """The same link with transfers that start this many seconds late.

    >>> later(MachineLinks("a", up=1e6, latency=0.25), 0.5).latency
    0.75
    """
    return replace(
        link,
        latency=None if link.latency is None else link.latency + seconds,
        inside_latency=None if link.inside_latency is None else link.inside_latency + seconds,
    )


def _requests(
    transfers: Iterable[Transfer], machine_of: Mapping[str, str]
) -> list[tuple[str, str, float, float]]:
    """Source machine, target machine, seconds and bytes of each request between known hosts."""
    total: dict[tuple[str, str, str, float, float], float] = {}
    for moved in transfers:
        if moved.source in machine_of and moved.target in machine_of and moved.finish > moved.start:
            key = (moved.run, moved.source, moved.target, moved.start, moved.finish)
            total[key] = total.get(key, 0.0) + moved.size
    return [
        (machine_of[source], machine_of[target], finish - start, size)
        for (_, source, target, start, finish), size in total.items()
    ]


def _latencies(requests: Iterable[tuple[str, str, float, float]]) -> dict[bool, float]:
    """The usual latency inside machines (True) and between them (False)."""
    found: dict[bool, list[float]] = {}
    for source, target, seconds, size in requests:
        if size <= SMALL:
            found.setdefault(source == target, []).append(seconds)
    return {inside: float(np.median(of)) for inside, of in found.items() if len(of) >= ENOUGH}


def _rates(requests: Iterable[tuple[str, str, float, float]]) -> dict[tuple[str, str], float]:
    """The undisturbed rate of each pair of machines with enough large transfers."""
    found: dict[tuple[str, str], list[float]] = {}
    for source, target, seconds, size in requests:
        if size >= LARGE:
            found.setdefault((source, target), []).append(size / seconds)
    return {pair: float(np.quantile(of, _UNDISTURBED)) for pair, of in found.items() if len(of) >= ENOUGH}


def _blended(probed: float | None, moved: float | None) -> float | None:
    if probed is None or moved is None:
        return moved if probed is None else probed
    return math.exp((1 - _SHARE) * math.log(probed) + _SHARE * math.log(moved))
