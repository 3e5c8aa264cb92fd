"""Small generated programs and platforms."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from headrace.model.platform import Host, Link, Pairs, Platform, Site
from headrace.model.program import Command, Program

texts = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
dot_texts = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=12
)
xml_texts = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn")), min_size=1, max_size=12)
amounts = st.one_of(st.integers(0, 10**15).map(float), st.floats(0, 1e15))
kinds = st.one_of(st.just(""), texts, st.sampled_from(["fft", "two words", "x" * 100]))


@st.composite
def programs(
    draw: st.DrawFn,
    names: st.SearchStrategy[str] = texts,
    sizes: st.SearchStrategy[float | None] = amounts,
    work: st.SearchStrategy[float | list[float]] = amounts,
) -> Program:
    """Each task reads some earlier items and comes after some earlier tasks it reads nothing from."""
    program = Program(draw(names))
    for name in draw(st.lists(names, max_size=2, unique=True)):
        program.input(f"in {name}", size=draw(sizes))
    for name in draw(st.lists(names, min_size=1, max_size=6, unique=True)):
        inputs = draw(st.lists(st.sampled_from([*program.data]), max_size=4)) if program.data else []
        makers = {program.producer[item] for item in inputs if item in program.producer}
        others = [task for task in program.tasks if task not in makers]
        after = draw(st.lists(st.sampled_from(others), max_size=2, unique=True)) if others else []
        outputs = draw(st.lists(st.integers(0, 9), max_size=3, unique=True))
        program.task(
            name=name,
            inputs=inputs,
            outputs={f"{name}/{i}": draw(sizes) for i in outputs},
            work=draw(work),
            kind=draw(kinds if names is texts else names),
            after=after,
        )
    if draw(st.booleans()):
        program.output(draw(st.sampled_from([*program.producer])))
    return program


@st.composite
def commands(draw: st.DrawFn) -> Program:
    program = Program("commands")
    for i in range(draw(st.integers(1, 3))):
        argv = tuple(draw(st.lists(texts, min_size=1, max_size=3)))
        program.task(Command(argv), name=f"t{i}", kind=draw(st.sampled_from([argv[0], "other"])))
    return program


_rates = st.one_of(st.integers(1, 10**12), st.floats(1e-3, 1e12))
_times = st.floats(0, 1e6)
_sizes = st.one_of(st.just(float("inf")), st.floats(0, 1e18))


def _hosts(names: list[str]) -> st.SearchStrategy[tuple[Host, ...]]:
    return st.tuples(
        *(
            st.builds(
                Host,
                st.just(name),
                speed=st.floats(1e-3, 1e6),
                cores=st.integers(1, 1000),
                kinds=st.dictionaries(texts, st.floats(1e-3, 1e6), max_size=2),
                load=st.floats(0, 0.99),
                memory=_sizes,
            )
            for name in names
        )
    )


@st.composite
def platforms(draw: st.DrawFn) -> Platform:
    """One of the three kinds of network."""
    names = draw(st.lists(texts, min_size=4, max_size=8, unique=True))
    common = {
        "contention": draw(st.sampled_from(["none", "fifo", "fair"])),
        "name": draw(texts),
    }
    if draw(st.booleans()):
        hosts = draw(_hosts(names[1:]))
        n = len(hosts)
        cells = st.lists(st.floats(1e-3, 1e12), min_size=n * n, max_size=n * n)
        latency = draw(st.one_of(_times, cells.map(lambda v: np.array(v).reshape(n, n))))
        pairs = Pairs(np.array(draw(cells)).reshape(n, n), latency)
        site = Site(names[0], hosts, storage=draw(_sizes))
        return Platform((site,), pairs=pairs, origin=draw(st.sampled_from([None, names[1]])), **common)
    sites = draw(
        st.tuples(
            *(
                st.builds(
                    Site,
                    st.just(name),
                    _hosts(hosts),
                    bandwidth=st.none() | _rates,
                    latency=_times,
                    uplink=_rates,
                    uplink_latency=_times,
                    storage=_sizes,
                )
                for name, hosts in ((names[0], names[2:]), (names[1], []))
            )
        )
    )
    link = st.builds(
        Link, st.just(names[0]), st.just(names[1]), _rates, _times, shared=st.booleans(), oneway=st.booleans()
    )
    links = tuple(draw(st.lists(link, max_size=2)))
    return Platform(sites, links, origin=draw(st.sampled_from([None, *names[:3]])), **common)
