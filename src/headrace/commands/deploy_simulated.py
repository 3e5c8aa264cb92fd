"""`headrace deploy --simulate`: simulated throughput, with planned and with round-robin routing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from headrace.model.deployment import Deployment
from headrace.model.errors import NoPlan

if TYPE_CHECKING:
    from headrace.simulator.pipeline.flow import FlowOutcome

Outcomes: TypeAlias = "Mapping[str, FlowOutcome]"
"""By routing; under `WIDER` as planned with a wider window, if the usual one limits the throughput."""
WIDER = "wider-window"
_WORDS = {"planned": "simulated", "round-robin": "round robin"}


def simulate_deployments(
    made: Mapping[str, Deployment | NoPlan], tell: Callable[[str], None]
) -> dict[str, Outcomes]:
    """Both routings, for each planner that found a deployment, and whether the window is the limit."""
    from headrace.simulator.pipeline.flow import ROUTINGS, simulate_deployment, with_wider_window

    happened: dict[str, Outcomes] = {}
    for planner, deployment in made.items():
        if isinstance(deployment, Deployment):
            tell(f"simulating {planner}'s deployment")
            outcomes = {str(r): simulate_deployment(deployment, r) for r in ROUTINGS}
            wider = with_wider_window(outcomes["planned"])
            happened[planner] = outcomes if wider is None else {**outcomes, WIDER: wider}
    return happened


def simulated_rows(outcomes: Outcomes) -> list[list[str]]:
    """Names and values, for the table of one deployment."""
    rows = [[word, _text(outcomes[routing])] for routing, word in _WORDS.items()]
    if WIDER in outcomes:
        usual, wider = outcomes["planned"].window, outcomes[WIDER]
        text = (
            f"room for {usual} buffers limits the simulation: with {wider.window} it is {wider.throughput:.4g} MB/s, "
            f"{wider.of_planned:.1%} of the plan"
        )
        rows.insert(1, ["", text])
    return rows


def simulated_cells(outcomes: Outcomes | None) -> list[str]:
    """The cells of one planner in a comparison."""
    return [f"{outcomes[r].throughput:.4g}" if outcomes else "" for r in _WORDS]


def simulated_json(outcomes: Outcomes) -> dict[str, Any]:
    """The outcomes as JSON."""
    return {
        routing: {
            "throughput": o.throughput,
            "of_planned": o.of_planned,
            "makespan": o.makespan,
            "megabytes": o.megabytes,
            "buffer": o.buffer,
            "window": o.window,
            "events": o.events,
            "seconds": o.seconds,
            "host_busy": o.host_busy,
            "link_use": o.link_use,
        }
        for routing, o in outcomes.items()
    }


def _text(outcome: FlowOutcome) -> str:
    how = "routed as planned" if outcome.routing == "planned" else "buffers routed round-robin"
    return f"{outcome.throughput:.4g} MB/s, {outcome.of_planned:.1%} of the plan ({how})"
