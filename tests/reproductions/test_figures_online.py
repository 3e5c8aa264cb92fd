"""Figures of the macro-dataflow paper and experiments with changing grids, in small."""

import re

import numpy as np
import pytest

from headrace.experiment.dataflow import jacobi
from headrace.model.behaviour import Change
from headrace.reproductions import FIGURES, Ask, Reproduction
from headrace.reproductions.contributors import (
    finished_over_time,
    measure,
    shared_pcs,
    with_changes,
)
from headrace.reproductions.estimates import qualities
from headrace.reproductions.lheft_ccr import ratios
from headrace.reproductions.lheft_failure import LOST, failure
from headrace.reproductions.lheft_fft import transform
from headrace.reproductions.lheft_joining import growing_grid, joining, programs
from headrace.reproductions.lheft_scalability import scalability, spread_out
from headrace.reproductions.lheft_scale import scale
from headrace.reproductions.planning_events import EVENTS, ORDERS, PLAIN_ORDERS, REPLAN, events
from headrace.reproductions.unstable_grids import STABILITIES, unstable_grid, walking_grid
from headrace.simulator.events.grid_state import TASK_ENDED

ONE = Ask(seeds=1)
MINE = (
    "estimates",
    "planning-events",
    "lheft-scale",
    "lheft-ccr",
    "lheft-fft",
    "lheft-joining",
    "lheft-failure",
    "lheft-scalability",
)


def sound(made: Reproduction) -> Reproduction:
    """Rows fit their headers, pictures their axes, and whoever disagrees says why."""
    assert made.rows
    assert made.claims
    assert made.pictures
    assert all(len(row) == len(made.headers) for row in made.rows)
    for picture in made.pictures:
        assert all(len(curve) == len(picture.x) for curve in picture.curves.values())
        assert all(len(errors) == len(picture.x) for errors in picture.errors.values())
        assert set(picture.errors) <= set(picture.curves)
    for claim in made.claims:
        assert claim.agrees == (not claim.why)
        assert claim.rule
    return made


def column(made: Reproduction, name: str) -> list:
    return [row[list(made.headers).index(name)] for row in made.rows]


def test_all_are_registered_and_importable():
    assert set(MINE) <= set(FIGURES)
    for name in MINE:
        assert re.fullmatch(r"[a-z_]+", FIGURES[name][0])


def test_scale_counts_what_both_schedulers_place():
    made = sound(scale(ONE, (3, 6), (8, 16)))
    placed, planned = column(made, "tasks placed by L-HEFT"), column(made, "by D-HEFT")
    tasks, plans = column(made, "tasks"), column(made, "plans of D-HEFT")
    assert all(p >= n for p, n in zip(placed, tasks, strict=True))
    assert all(n <= p <= n * k for p, n, k in zip(planned, tasks, plans, strict=True))
    assert len({row[2] for row in made.rows}) == 2


@pytest.mark.slow
def test_scale_gives_the_same_table_again_but_for_seconds():
    first, second = (scale(ONE, (2, 4), (8,)) for _ in range(2))
    seconds = [k for k, name in enumerate(first.headers) if "CPU" in name or name == "of D-HEFT"]
    for one, other in zip(first.rows, second.rows, strict=True):
        assert (
            np.delete(np.array(one, object), seconds).tolist()
            == np.delete(np.array(other, object), seconds).tolist()
        )


def test_longer_tasks_take_longer_at_every_ratio():
    made = sound(ratios(ONE, (2.0, 6.0), 3))
    assert column(made, "L-HEFT s")[0] < column(made, "L-HEFT s")[1]
    assert len(made.rows) == 2 + 2 + 2


def test_fft_on_idle_pcs_is_planned_once():
    made = sound(transform(ONE, (8, 16), 2**8))
    assert [row[-1] for row in made.rows if row[1] == "idle"] == [1.0, 1.0]


@pytest.mark.slow
def test_joining_contributors_shorten_the_run():
    made = sound(joining(ONE, programs(10, 2**12)))
    with_joins, alone = column(made, "makespan s"), column(made, "without joins s")
    assert all(a < b for a, b in zip(with_joins, alone, strict=True))
    assert [c.time for c in growing_grid(0, 60.0).changes][::2] == [180.0 + 60 * k for k in range(8)]


def test_failure_reports_what_is_executed_again():
    made = sound(failure(ONE, 6, 60.0))
    again = dict(zip([tuple(r[:3]) for r in made.rows], column(made, "executed again"), strict=True))
    assert sum(again.values()) > 0
    copied = zip(column(made, "replication step"), column(made, "replicas"), strict=True)
    assert all(replicas == 0 for step, replicas in copied if step == 0)  # only where asked for


def test_finished_tasks_fall_when_data_is_lost_and_end_at_all():
    program = jacobi(5, pieces=16, ratio=30.0)
    lab = with_changes(shared_pcs(4, 0, bandwidth=2e5), [Change(60.0, "host-down", "pc1")])
    made = measure(program, lab, "lheft")
    assert made.redone > 0
    before, after, end = finished_over_time(made.run, [60.0 - 1e-6, 60.0, made.makespan])
    assert after == before - made.redone
    assert end == program.graph.n_tasks
    assert (made.run.log_kind == TASK_ENDED).sum() == program.graph.n_tasks + made.redone


def test_the_lost_contributor_exists():
    assert LOST in {host.name for host in shared_pcs(20, 0).hosts}


def test_speedup_is_bounded_by_contributors_and_one_moves_nothing():
    made = sound(scalability(ONE, (1, 2, 4), 4))
    for count, speedup, moved in zip(
        column(made, "contributors"), column(made, "speedup"), column(made, "GB moved"), strict=True
    ):
        assert 0 < speedup <= count * (1 + 1e-9)
        assert (moved == 0) == (count == 1)


def test_initial_pieces_are_dealt_out_alike():
    graph = spread_out(jacobi(2, pieces=8).graph, 4, seed=3)
    outside = np.flatnonzero(graph.producer < 0).tolist()
    counts = [sum(graph.initial_locations.of(item) == (f"pc{i}",) for item in outside) for i in range(4)]
    assert sum(counts) == len(outside)
    assert max(counts) - min(counts) <= 1


def test_estimates_are_normalised_by_perfect_ones():
    made = sound(qualities(ONE, ("perfect", "bounded:0.5", "forecast"), tasks_in_chunk=5))
    assert made.rows[0][6:] == [1.0] * 5
    assert any(cell != 1.0 for row in made.rows[1:] for cell in row[6:])


@pytest.mark.slow
def test_planning_events_have_all_tables():
    made = sound(events(ONE, ("stable", "unstable"), tasks_in_chunk=4))
    tables = column(made, "table")
    assert [tables.count(t) for t in dict.fromkeys(tables)] == [
        2 * len(EVENTS),
        len(REPLAN),
        len(ORDERS),
        len(PLAIN_ORDERS),
    ]
    plans = {(r[1], r[2]): r[5] for r in made.rows if r[0] == tables[0]}
    assert plans["once", "stable"] == 1
    assert plans["S1, 100 s", "stable"] > plans["S1, 1600 s", "stable"]
    assert all(r[4] >= 1.0 for r in made.rows)


@pytest.mark.parametrize("stability", STABILITIES)
def test_only_unstable_hosts_come_and_go(stability):
    script = unstable_grid(stability, 1)
    gone = {c.name[:2] for c in script.changes if c.what == "host-down"}
    expected = {"half unstable": {"c2"}, "unstable": {"c0", "c1", "c2"}}.get(stability, set())
    assert gone == expected
    steady = {h.name[:2] for h in script.platform.hosts if h.trace is None or h.trace.steady}
    assert steady == ({"c0", "c1", "c2"} - expected if stability != "changing loads" else set())


def test_grids_follow_their_seed():
    one, same, other = walking_grid(1), walking_grid(1), walking_grid(2)
    assert one.platform.hosts[0].trace == same.platform.hosts[0].trace
    assert one.platform.hosts[0].trace != other.platform.hosts[0].trace
