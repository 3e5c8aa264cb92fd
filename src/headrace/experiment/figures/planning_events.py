"""When to plan again: S1, S2, S3 and once on grids that change (the parameter-sweep paper, sections 5.6 and 7.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.core.steering import Rules
from headrace.experiment.figures import Ask, Cell, Claim, Reproduction, Series
from headrace.experiment.figures.contributors import mean
from headrace.experiment.figures.unstable_grids import (
    STABILITIES,
    Stability,
    sweep,
    unstable_grid,
)
from headrace.experiment.online import Setting, simulate_grid
from headrace.simulator.online import Mechanics

PLANNER = "xsufferage"
PLANNING = 1.0
"""Virtual seconds a plan takes for each thousand tasks times hosts: 9 s for the first one."""
SEEDS = 3
INTERVALS = (200.0, 800.0, 3200.0)
EVENTS = {f"S1, {i:g} s": Rules("S1", i, planning=PLANNING) for i in INTERVALS} | {
    "S2": Rules("S2", planning=PLANNING),
    "S3": Rules("S3", planning=PLANNING),
    "once": Rules("once", planning=PLANNING, replan="neither", idle=False),
}
REPLAN = {
    f"replan on {what}": Rules("S1", 3200.0, planning=PLANNING, replan=what)
    for what in ("both", "joins", "losses", "neither")
}
ORDERS = {
    f"{order}{', stealing' if steal else ''}": Mechanics(link_order=order, steal=steal)
    for order in ("in-order", "out-of-order", "hybrid")
    for steal in (False, True)
}
WHEN, CHANGES, LINKS = "when to plan", "changes of the grid", "order of links"


@dataclass(frozen=True)
class Row:
    """The means of one rule on one grid."""

    table: str
    rule: str
    grid: Stability
    makespan: float
    plans: float
    stolen: float
    setting: Setting = field(repr=False)


def reproduce(ask: Ask) -> Reproduction:
    """Three tables: when to plan, after which changes, in which order links serve files."""
    return events(ask, STABILITIES)


def events(ask: Ask, grids: Sequence[Stability]) -> Reproduction:
    """The tables for these grids; the second and third for the last, and the last but one, of them."""
    rows = []
    for grid in grids:
        for rule, chosen in EVENTS.items():
            rows.append(_row(ask, WHEN, rule, grid, Setting(chosen, estimates="forecast")))
    for rule, chosen in REPLAN.items():
        rows.append(_row(ask, CHANGES, rule, grids[-1], Setting(chosen, estimates="forecast")))
    for grid in (grids[0], grids[-1]):
        for rule, mechanics in ORDERS.items():
            setting = Setting(EVENTS["S2"], mechanics, estimates="forecast")
            rows.append(_row(ask, LINKS, rule, grid, setting))
    return Reproduction(
        title="When to plan again on a grid that changes",
        source="the parameter-sweep paper, sections 5.6.1, 5.6.5 and 7.3",
        headers=["table", "rule", "grid", "makespan s", "over the best", "plans", "stolen"],
        rows=[_cells(row, rows) for row in rows],
        claims=claims(rows, grids),
        pictures=[
            Series(
                title="Makespan by planning events",
                x_label="grid",
                y_label="makespan, s",
                x=list(grids),
                curves={rule: [_one(rows, WHEN, rule, grid).makespan for grid in grids] for rule in EVENTS},
                shape="bars",
            )
        ],
        notes=[
            f"Means of {_seeds(ask)} seeds. 400 tasks in chunks that share files of 1200 KB, planned by {PLANNER} "
            "with forecasts; making a plan takes 9 s for all tasks and less for fewer, and work goes on meanwhile.",
            "Half unstable: the hosts and the link of the last cluster (12 of 22 hosts) walk around their means and "
            "its hosts leave for ten minutes every fifty; unstable: all do.",
            "`once` neither looks at changes of the grid nor at idle hosts: only what nobody has is planned again. "
            "The second table is for S1 with 3200 s, where changes are hardly seen otherwise; the third for S2.",
        ],
    )  # fmt: skip


def _seeds(ask: Ask) -> int:
    return SEEDS if ask.seeds is None else ask.seeds


def _row(ask: Ask, table: str, rule: str, grid: Stability, setting: Setting) -> Row:
    ask.tell(f"{table}: {rule}, {grid} grid")
    runs = [
        simulate_grid(sweep(seed), unstable_grid(grid, seed), PLANNER, setting, seed=seed)
        for seed in range(_seeds(ask))
    ]
    return Row(
        table,
        rule,
        grid,
        mean([run.makespan for run in runs]),
        mean([float(run.plans) for run in runs]),
        mean([float(run.stolen) for run in runs]),
        setting,
    )


def _one(rows: Sequence[Row], table: str, rule: str, grid: Stability) -> Row:
    return next(row for row in rows if (row.table, row.rule, row.grid) == (table, rule, grid))


def _cells(row: Row, rows: Sequence[Row]) -> list[Cell]:
    best = min(r.makespan for r in rows if (r.table, r.grid) == (row.table, row.grid))
    return [row.table, row.rule, row.grid, row.makespan, row.makespan / best, row.plans, row.stolen]


def claims(rows: Sequence[Row], grids: Sequence[Stability]) -> list[Claim]:
    """What the paper says or expects, against the rows."""
    return [*_claims_about_events(rows, grids), *_claims_about_the_rest(rows, grids)]


def _claims_about_events(rows: Sequence[Row], grids: Sequence[Stability]) -> list[Claim]:
    calm, wild = grids[0], grids[-1]
    once = {grid: _one(rows, WHEN, "once", grid) for grid in (calm, wild)}
    best = {
        grid: min(
            (r for r in rows if r.table == WHEN and r.grid == grid and r.rule != "once"),
            key=lambda r: r.makespan,
        )
        for grid in grids
    }
    loss = {grid: once[grid].makespan / best[grid].makespan for grid in once}
    middle = grids[len(grids) // 2]
    s2, s3 = _one(rows, WHEN, "S2", middle), _one(rows, WHEN, "S3", middle)
    tuned = max(_one(rows, WHEN, "S2", g).makespan / best[g].makespan for g in grids)
    fewer = s3.plans < s2.plans and s3.makespan < 1.03 * s2.makespan
    return [
        Claim(
            "in a stable, predictable grid it is enough to plan once",
            f"planning once takes {loss[calm]:.3f} times as long as the best rule ({best[calm].rule})",
            loss[calm] < 1.03,
            "" if loss[calm] < 1.03 else "plans are carried out under another rule for links than they are made for",
        ),
        Claim(
            "where the grid changes decisions lose their validity: plans must be made again",
            f"on the {wild} grid once takes {loss[wild]:.2f} times as long as the best rule ({best[wild].rule})",
            loss[wild] > 1.1,
            "" if loss[wild] > 1.1 else "what is left to do is done by hosts that have nothing else",
        ),
        Claim(
            "an interval tuned by deviation (S2) suits every grid better than a constant one",
            f"S2 is at most {tuned:.3f} times the best rule of each grid",
            tuned < 1.05,
            "" if tuned < 1.05 else "an interval that is short enough for the grid is as good, see its rows",
        ),
        Claim(
            "with half of the resources unstable S2 keeps planning often; weights (S3) avoid that",
            f"{middle} grid: S2 makes {s2.plans:.1f} plans and takes {s2.makespan:.0f} s, "
            f"S3 {s3.plans:.1f} and {s3.makespan:.0f} s",
            fewer,
            "" if fewer else "the weights lower the deviation too little to stay below the threshold more often",
        ),
    ]  # fmt: skip


def _claims_about_the_rest(rows: Sequence[Row], grids: Sequence[Stability]) -> list[Claim]:
    calm, wild = grids[0], grids[-1]
    both, neither = (_one(rows, CHANGES, f"replan on {what}", wild) for what in ("both", "neither"))
    orders = {
        grid: {rule: _one(rows, LINKS, rule, grid).makespan for rule in ORDERS} for grid in (calm, wild)
    }
    loose = {grid: orders[grid]["in-order"] / orders[grid]["out-of-order"] for grid in orders}
    steal = mean(
        [orders[g][f"{o}, stealing"] / orders[g][o] for g in orders for o in ("in-order", "out-of-order")]
    )
    return [
        Claim(
            "new hosts should be planned for at once",
            f"replanning on joins and losses {both.makespan:.0f} s, on neither {neither.makespan:.0f} s",
            both.makespan < neither.makespan,
            "" if both.makespan < neither.makespan else "S1 comes round soon enough",
        ),
        Claim(
            "keeping the planned order leaves links idle while a result is late",
            f"in-order takes {loose[calm]:.3f} times as long as out-of-order on the {calm} grid, "
            f"{loose[wild]:.3f} times on the {wild} one",
            max(loose.values()) > 1.005,
            "" if max(loose.values()) > 1.005 else "plans book results where they fit, so they seldom stand in the way",
        ),
        Claim(
            "work stealing inside a cluster is an option that helps against unexpected delays",
            f"makespans with stealing are {steal:.3f} times those without",
            steal < 1.0,
            "" if steal < 1.0 else "hosts that run dry get a new plan here, which leaves little to steal",
        ),
    ]  # fmt: skip
