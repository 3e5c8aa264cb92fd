"""Which of several copies is sent."""

from __future__ import annotations

import headrace as hr
from headrace.core.scheduler import Assign
from headrace.model.platform import Host, Platform, Site
from headrace.simulator.events.backend import simulate_scheduler


def test_of_copies_that_are_as_near_the_one_over_the_fewest_links() -> None:
    """The first cluster has the file when the second asks for it; over two uplinks it would be as quick."""
    program = hr.Program()
    file = program.input("file", size=100.0)
    program.task(None, inputs=[file], outputs={"x": 1.0}, work=1.0, name="first")
    program.task(None, inputs=[file, "x"], outputs={"y": 1.0}, work=1.0, name="second")
    sites = [Site(f"c{k}", (Host(f"h{k}"),), uplink=10.0) for k in range(2)]
    platform = Platform((*sites, Site("origin")), contention="fair", origin="origin")

    class Apart:
        name = "apart"

        def react(self, state, events):  # type: ignore[no-untyped-def]
            if state.time == 0:
                return [Assign("first", "h0", 0)]
            return [Assign("second", "h1", 1)] if state.done[0] and not state.done[1] else []

    run = simulate_scheduler(program.graph, platform, Apart())
    moved = run.executed
    names = platform.network.place_names
    sources = {
        names[t]: names[s]
        for i, s, t in zip(moved.move_item, moved.move_source, moved.move_target, strict=True)
        if program.graph.item_names[i] == "file"
    }
    assert sources == {"c0": "origin", "c1": "origin"}
