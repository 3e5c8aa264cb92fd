"""Which of several copies is sent."""

from __future__ import annotations

from collections.abc import Sequence

import headrace as hr
from headrace.core.scheduler import EVERY_EVENT, Assign
from headrace.core.view import RunView
from headrace.model.events import Event
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
        wake = EVERY_EVENT

        def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
            if view.time == 0:
                return [Assign("first", "h0", 0)]
            return [Assign("second", "h1", 1)] if view.done[0] and not view.done[1] else []

    run = simulate_scheduler(program.graph, platform, Apart())
    moved = run.executed
    names = platform.network.place_names
    sources = {
        names[t]: names[s]
        for i, s, t in zip(moved.move_item, moved.move_source, moved.move_target, strict=True)
        if program.graph.item_names[i] == "file"
    }
    assert sources == {"c0": "origin", "c1": "origin"}
