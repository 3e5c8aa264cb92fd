"""The machines and applications of the LPSched paper, with trial measurements that reproduce its placements.

The paper gives the machines' powers and says that they are connected by Fast Ethernet; it does not print its trial
runs. Those here were chosen to agree with what it does say: 53.2 s for 32 MB on MG1, adders that
take 2, 5 or 7 times as long, and the numbers of copies.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from headrace.model.pipeline import READER_KIND, FilterProfile, Knobs, Pipeline, PipelineProblem, Source
from headrace.model.platform import Host, Link, Platform, Site

FAST, SLOW, MARYLAND, OHIO = 1.4745, 0.9912, 1.29105, 1.85466
PORT = 12.5e6
"""Bandwidth of Fast Ethernet in bytes/s."""
SLOW_TO_READ = 3.0
"""How much faster the first kind of machine reads, disk and CPU combined (section 5.4 of the paper)."""
LOADED = (4, 5, 6, 7, 8, 10, 13, 14)
"""Machines of Minas Gerais under a load of 50 % in section 5.3."""
HEAVY = {2: 2.1, 5: 4.95, 7: 6.95}
"""The adder's time as a multiple of the reader's, for 1 x 2 x 1, 1 x 5 x 1 and 1 x 7 x 1."""


def minas_gerais(
    *, without: Container[int] = (), loaded: Container[int] = (), slow_disks: bool = False
) -> Platform:
    """MG1 to MG19 in three clusters; a machine under load has half its power."""
    clusters = (("MG-a", range(1, 9), FAST), ("MG-b", range(9, 13), SLOW), ("MG-c", range(13, 20), SLOW))
    sites = tuple(
        Site(
            name,
            tuple(
                Host(
                    f"MG{i}",
                    power,
                    kinds={READER_KIND: FAST / SLOW_TO_READ} if slow_disks and power == SLOW else {},
                    load=0.5 if i in loaded else 0.0,
                )
                for i in numbers
                if i not in without
            ),
            bandwidth=PORT,
        )
        for name, numbers, power in clusters
    )
    pairs = (("MG-a", "MG-b"), ("MG-a", "MG-c"), ("MG-b", "MG-c"))
    return Platform(sites, links=tuple(Link(a, b, PORT) for a, b in pairs), name="UFMG")


def averager(weight: int, sources: Iterable[Source]) -> Pipeline:
    """GridArrayAverager 1 x weight x 1 over 32 MB, with trial measurements from a fast machine."""
    return Pipeline(
        f"1x{weight}x1",
        [
            FilterProfile("ArrayReader", 53.2, 32.0, FAST),
            FilterProfile("ArrayAdder", 53.2 * HEAVY[weight], 3.2, FAST),
            FilterProfile("ArrayAverager", 31.92, 0.0, FAST),
        ],
        sources=sources,
    )


def on(*machines: int) -> Source:
    """The input, in equal parts on these machines of Minas Gerais."""
    name = f"MG{machines[0]}" if len(machines) == 1 else f"MG{machines[0]}-{machines[-1]}"
    return Source(name, {f"MG{i}": 1 / len(machines) for i in machines})


def averager_problem(weight: int, platform: Platform, *sources: Source) -> PipelineProblem:
    return PipelineProblem(averager(weight, sources or (on(1),)), platform, Knobs(host_cost=0.01))


def microscope_problem(
    link: float | None = None, *, least: float = 0.0, cross: float = 1.0
) -> PipelineProblem:
    """The virtual microscope in Maryland, data on MD1; with the bandwidth of a shared link in bytes/s, Ohio too."""
    times = {"Reader": 6, "Decompress": 244, "Clip": 42, "Zoom": 35, "View": 7}
    volumes = (100, 650, 480, 90, 0)
    filters = [
        FilterProfile(name, seconds, volume, MARYLAND)
        for (name, seconds), volume in zip(times.items(), volumes, strict=True)
    ]
    maryland = Site("MD", tuple(Host(f"MD{i}", MARYLAND) for i in range(1, 49)), bandwidth=PORT)
    ohio = Site("OH", tuple(Host(f"OH{i}", OHIO) for i in range(1, 25)), bandwidth=PORT)
    if link is None:
        platform = Platform((maryland,), name="Maryland")
    else:
        platform = Platform((maryland, ohio), links=(Link("MD", "OH", link, shared=True),), name="MD+OH")
    return PipelineProblem(
        Pipeline("microscope", filters, sources=[Source("MD1", {"MD1": 1.0})]),
        platform,
        Knobs(host_cost=0.1, least=least, cross=cross),
    )
