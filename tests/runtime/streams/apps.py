"""Applications that hypothesis builds, and what a run of them produces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import strategies as st

from headrace.runtime.filters import App
from headrace.runtime.streams.hosts import Hosts
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import even_plan
from headrace.runtime.streams.progress import Progress, UnitResult
from headrace.runtime.streams.supervisor import Supervisor

from .made import LIMIT, build


@st.composite
def cases(draw: st.DrawFn) -> tuple[App, dict[str, int], StreamOptions]:
    """An application, copies of its filters, and options."""
    filters = draw(st.integers(0, 3))
    shape = draw(st.sampled_from(["chain", "diamond"]))
    sizes = st.lists(st.one_of(st.integers(1, 40), st.sampled_from([1, LIMIT - 1, LIMIT])), max_size=25)
    units = draw(st.lists(sizes, min_size=1, max_size=4))
    app = build(shape, filters, draw(st.integers(0, 3)), units)
    copies = {name: draw(st.integers(1, 4)) for name in app.order}
    options = StreamOptions(
        credits=draw(st.sampled_from([1, 2, 4, 16])),
        routing=draw(st.sampled_from(["planned", "round-robin", "least-loaded"])),
        work_conserving=draw(st.booleans()),
    )
    return app, copies, options


def carried_out(
    app: App, copies: dict[str, int], hosts: Hosts, options: StreamOptions | None = None
) -> tuple[Progress, list[UnitResult]]:
    units: list[UnitResult] = []
    plan = even_plan(app, copies, hosts.names)
    run = Supervisor(app, plan, hosts, options or StreamOptions(), commit=units.append)
    return run.run(), units


def multiset(units: Sequence[UnitResult]) -> Counter[bytes]:
    return Counter(data for unit in units for buffers in unit.results.values() for data in buffers)
