"""A plan that is right passes; for every rule, a change that breaks it is found."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from headrace.model.check import check, require_valid
from headrace.model.errors import BadPlan
from headrace.model.plan import Plan
from headrace.model.platform import Host, Link, Platform, Site
from headrace.model.program import Program

from .plans import changed, plan_of, rules, without_move

A, B, C = 0, 1, 2
X, Y, SIGNAL, Z = 0, 1, 2, 3


def ports(contention: str = "fifo", storage: float = math.inf) -> Platform:
    hosts = (Host("a", 2.0, 2), Host("b"), Host("c"))
    return Platform((Site("s", hosts, bandwidth=100.0, storage=storage),), contention=contention, origin="c")


def small() -> Program:
    program = Program("small")
    x = program.input("x", size=200)
    y = program.task(name="t0", inputs=[x], outputs={"y": 100}, work=4.0)
    seen = program.task(name="t1", inputs=[x], outputs=["seen"], work=1.0)
    z = program.task(name="t2", inputs=[y, seen], outputs={"z": 50}, work=3.0)
    program.output(z)
    return program


def good(platform: Platform | None = None) -> Plan:
    """x goes from c to a, then to b; y from a to b while t1 runs there; z returns."""
    return plan_of(
        small(),
        platform or ports(),
        [(A, 0, 2.0, 4.0), (B, 0, 4.0, 5.0), (B, 0, 5.0, 8.0)],
        [(X, C, A, 0.0, 2.0), (X, C, B, 2.0, 4.0), (Y, A, B, 4.0, 5.0), (Z, B, C, 8.0, 8.5)],
        bound=6.0,
    )


@pytest.mark.parametrize("contention", ["none", "fifo", "fair"])
def test_a_right_plan_passes(contention):
    assert check(small(), ports(contention), good(ports(contention))) == []
    require_valid(small().graph, ports(contention), good(ports(contention)))


CHANGES = {
    "too short": ("finish", 0, 3.5, ["duration"]),
    "too long": ("finish", 2, 8.001, ["duration", "source"]),
    "host too high": ("host", 0, 3, ["host"]),
    "host negative": ("host", 1, -1, ["host"]),
    "host of a maker": ("host", 2, 3, ["host"]),
    "core too high": ("core", 0, 2, ["core"]),
    "core of another host": ("core", 1, 1, ["core"]),
    "core negative": ("core", 2, -1, ["core"]),
    "start not a number": ("start", 0, math.nan, ["finite"]),
    "finish not a number": ("finish", 2, math.nan, ["finite"]),
    "start endless": ("start", 2, -math.inf, ["finite"]),
    "transfer not a number": ("move_finish", 3, math.nan, ["finite", "result"]),
    "transfer start endless": ("move_start", 3, math.inf, ["finite", "result"]),
    "transfer too short": ("move_finish", 0, 1.5, ["transfer"]),
    "transfer too long": ("move_finish", 3, 9.0, ["transfer"]),
    "source has nothing": ("move_source", 2, C, ["source"]),
    "no such item": ("move_item", 3, 4, ["item", "result"]),
    "negative item": ("move_item", 3, -1, ["item", "result"]),
    "no such place": ("move_target", 3, 3, ["place", "result"]),
    "negative place": ("move_source", 3, -1, ["place", "result"]),
    "to itself": ("move_target", 3, B, ["place", "result"]),
    "to another place": ("move_target", 3, A, ["result"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_one_value_is_found(change):
    array, index, value, broken = CHANGES[change]
    assert rules(changed(good(), array, index, value)) == broken


def shifted(plan: Plan, index: int, by: float, prefix: str = "") -> Plan:
    plan = changed(plan, f"{prefix}start", index, getattr(plan, f"{prefix}start")[index] + by)
    return changed(plan, f"{prefix}finish", index, getattr(plan, f"{prefix}finish")[index] + by)


def test_a_task_before_its_data():
    assert rules(shifted(good(), 0, -1.0)) == ["input"]


def test_a_task_before_its_producer():
    broken = shifted(good(), 2, -0.5)
    assert rules(broken) == ["input", "order", "overlap"]
    (order,) = [v for v in check(small(), ports(), broken) if v.rule == "order"]
    assert "'t2'" in order.message
    assert "'t1'" in order.message


def test_a_task_before_the_beginning():
    assert rules(shifted(good(), 0, -2.5)) == ["input", "start"]
    assert rules(shifted(good(), 0, -0.1, "move_")) == ["source", "start"]


def test_a_signal_needs_no_transfer_but_its_producer():
    program = Program()
    done = program.task(name="first", work=2.0)
    program.task(name="second", inputs=[done], work=1.0)
    platform = ports()
    plan = plan_of(program, platform, [(A, 0, 0.0, 1.0), (B, 0, 1.0, 2.0)])
    assert rules(plan) == []
    assert rules(shifted(plan, 1, -0.25)) == ["order"]


def test_a_reader_beside_its_producer_breaks_one_rule():
    program = Program()
    made = program.task(name="first", outputs={"y": 10}, work=2.0)
    program.task(name="second", inputs=[made], work=2.0)
    plan = plan_of(program, ports(), [(A, 0, 0.0, 1.0), (A, 1, 0.5, 1.5)])
    assert [v.rule for v in check(program, ports(), plan)] == ["order"]


def test_two_tasks_on_one_core():
    program = Program()
    for name in ("p", "q"):
        program.task(name=name, work=4.0)
    beside = plan_of(program, ports(), [(A, 0, 0.0, 2.0), (A, 1, 1.0, 3.0)])
    assert rules(beside) == []
    assert rules(changed(beside, "core", 1, 0)) == ["overlap"]
    after = plan_of(program, ports(), [(A, 0, 2.0, 4.0), (A, 0, 0.0, 2.0)])
    assert rules(after) == []


def test_every_task_under_a_long_one_is_found():
    program = Program()
    for work in (20.0, 2.0, 2.0, 2.0, 0.0, 0.0):
        program.task(work=work)
    rows = [(A, 0, 0.0, 10.0), (A, 0, 1.0, 2.0), (A, 0, 5.0, 6.0), (A, 0, 10.0, 11.0)]
    edge_and_inside = [(A, 0, 10.0 + 1e-11, 10.0 + 1e-11), (A, 0, 3.0, 3.0)]
    found = check(program, ports(), plan_of(program, ports(), rows + edge_and_inside))
    assert [v.rule for v in found] == ["overlap"] * 3
    assert [f"task_{t}" in v.message for t, v in zip((1, 5, 2), found, strict=True)] == [True] * 3


@pytest.mark.parametrize(
    ("index", "broken"), [(0, ["input", "source"]), (1, ["input"]), (2, ["input"]), (3, ["result"])]
)
def test_a_missing_transfer(index, broken):
    plan = good()
    if index == 0:  # x reaches b by way of a, so that a missing first leg shows twice
        plan = changed(shifted(plan, 1, 0.0, "move_"), "move_source", 1, A)
        assert rules(plan) == []
    assert rules(without_move(plan, index)) == broken


def test_a_transfer_before_its_item_is_made():
    assert rules(shifted(good(ports("none")), 2, -0.5, "move_")) == ["source"]


def test_the_producer_counts_for_the_transfer_of_a_signal():
    moved = (SIGNAL, B, A, 5.0, 5.0)
    plan = plan_of(small(), ports(), list(rows_of(good())), [*moves_of(good()), moved])
    assert rules(plan) == []
    assert rules(shifted(plan, 4, -0.5, "move_")) == ["source"]
    assert rules(changed(plan, "move_finish", 4, 5.5)) == ["transfer"]


def rows_of(plan: Plan):
    return zip(*(getattr(plan, n).tolist() for n in ("host", "core", "start", "finish")), strict=True)


def moves_of(plan: Plan):
    names = ("item", "source", "target", "start", "finish")
    return zip(*(getattr(plan, f"move_{n}").tolist() for n in names), strict=True)


@pytest.mark.parametrize("again", [(X, C, A, 4.0, 6.0), (X, A, C, 5.0, 7.0), (Y, B, A, 5.0, 6.0)])
def test_an_item_comes_to_a_place_once(again):
    plan = plan_of(small(), ports(), list(rows_of(good())), [*moves_of(good()), again])
    assert rules(plan) == ["twice"]


def test_what_is_made_at_a_place_need_not_come_there():
    early = (Y, B, A, 1.0, 2.0)
    plan = plan_of(small(), ports("none"), list(rows_of(good())), [early, *moves_of(good())])
    found = {v.rule: v.message for v in check(small(), ports("none"), plan)}
    assert sorted(found) == ["source", "twice"]
    assert found["twice"].startswith("transfer of item 'y' from 'b' to 'a', 1.0 to 2.0")


def test_a_signal_takes_no_time_and_no_link():
    program = Program()
    big, signal = program.task(name="make", outputs={"big": 100, "signal": 0}, work=1.0)
    program.task(name="use", inputs=[big, signal], work=1.0)
    site = Site("s", (Host("a"), Host("b")), bandwidth=100.0, latency=0.5)
    platform = Platform((site,), contention="fifo")
    moves = [(0, A, B, 1.0, 2.5), (1, A, B, 2.0, 2.0)]
    assert rules(plan_of(program, platform, [(A, 0, 0.0, 1.0), (B, 0, 2.5, 3.5)], moves)) == []


def test_one_transfer_at_a_time_under_fifo():
    assert rules(shifted(good(), 1, -1.0, "move_")) == ["link"]
    assert rules(shifted(good(ports("none")), 1, -1.0, "move_")) == []
    (found,) = check(small(), ports(), shifted(good(), 1, -1.0, "move_"))
    assert "'c out'" in found.message


def test_storage():
    assert rules(good(ports(storage=700.0))) == []
    assert rules(good(ports(storage=699.0))) == ["storage"]
    (found,) = check(small(), ports(storage=699.0), good())
    assert found.message == "site 's' needs 700.0 bytes at 2.0, its storage holds 699.0"
    # 400 at first, 700 from 2 to 4, 400 from 4 to 5, then y and z at b alone: 150.
    assert len(check(small(), ports(storage=399.0), good())) == 1
    assert rules(good(ports(storage=150.0))) == ["storage"]


def test_storage_is_counted_from_the_start_of_a_producer_to_the_last_use():
    program = Program()
    y = program.task(name="make", outputs={"y": 20}, work=4.0)
    program.task(name="use", inputs=[y], outputs={"z": 30}, work=4.0)
    program.task(name="other", outputs={"w": 40}, work=8.0)

    def plan(other: float, storage: float) -> Plan:
        platform = Platform((Site("s", (Host("a"), Host("b")), storage=storage),), origin="s")
        rows = [(0, 0, 0.0, 4.0), (0, 0, 4.0, 8.0), (1, 0, other, other + 8.0)]
        return plan_of(program, platform, rows)

    # y (20): 0 to 8; z (30): from 4 on, kept as a result; w (40): from `other` on, kept as a result.
    assert rules(plan(other=0.0, storage=90.0)) == []
    assert rules(plan(other=0.0, storage=89.0)) == ["storage"]
    assert rules(plan(other=8.0, storage=70.0)) == []
    assert rules(plan(other=8.0 - 1e-11, storage=70.0)) == []
    assert rules(plan(other=7.9, storage=89.0)) == ["storage"]
    assert rules(plan(other=8.0, storage=69.0)) == ["storage"]


def test_inputs_that_are_everywhere_take_no_room_and_no_transfer():
    platform = replace(ports(storage=450.0), origin=None)
    rows, moves = list(rows_of(good())), list(moves_of(good()))
    assert rules(plan_of(small(), platform, rows, moves[2:3])) == []
    assert rules(plan_of(small(), platform, rows)) == ["input"]


def test_no_route():
    sites = (Site("x", (Host("a"),)), Site("y", (Host("b"),)))
    platform = Platform(sites, (Link("x", "y", 100.0, oneway=True),))
    program = Program()
    y = program.task(name="make", outputs={"y": 100}, work=1.0)
    program.task(name="use", inputs=[y], work=1.0)
    there = plan_of(program, platform, [(0, 0, 0, 1), (1, 0, 2, 3)], [(0, 0, 1, 1, 2)])
    back = plan_of(program, platform, [(1, 0, 0, 1), (0, 0, 2, 3)], [(0, 1, 0, 1, 2)])
    assert rules(there) == []
    assert rules(back) == ["input", "route"]


def test_a_circle_of_transfers_makes_nothing():
    platform = Platform.pairwise([1.0, 1.0, 1.0], bandwidth=math.inf)
    program = Program()
    y = program.task(name="make", outputs={"y": 100}, work=1.0)
    program.task(name="use", inputs=[y], work=1.0)
    rows = [(0, 0, 0.0, 1.0), (2, 0, 5.0, 6.0)]
    chain = plan_of(program, platform, rows, [(0, 1, 2, 5.0, 5.0), (0, 0, 1, 5.0, 5.0)])
    circle = plan_of(program, platform, rows, [(0, 1, 2, 5.0, 5.0), (0, 2, 1, 5.0, 5.0)])
    assert rules(chain) == []
    found = check(program, platform, circle)
    assert [v.rule for v in found] == ["source", "source"]
    assert "cycle" in found[0].message


def test_bound_and_other_numbers():
    assert rules(replace(good(), bound=8.5 * (1 + 1e-10))) == []
    assert rules(replace(good(), bound=8.5001)) == ["bound"]
    assert rules(replace(good(), bound=math.nan)) == ["finite"]
    assert rules(replace(good(), seconds=math.inf)) == ["finite"]


@pytest.mark.parametrize(
    ("array", "value"),
    [
        ("host", np.zeros(2, np.int32)),
        ("core", np.zeros(4, np.int32)),
        ("start", np.zeros((3, 1))),
        ("finish", np.zeros(0)),
        ("move_target", np.zeros(3, np.int32)),
        ("move_start", np.zeros(5)),
        ("move_item", np.zeros((2, 2), np.int32)),
        ("host", np.zeros(3)),
        ("start", np.array(["0"] * 3)),
    ],
)
def test_arrays_of_the_wrong_shape_or_type(array, value):
    found = check(small(), ports(), replace(good(), **{array: value}))
    assert {v.rule for v in found} == {"shape"}
    assert any(array in v.message for v in found)


def test_all_violations_are_counted_and_the_list_is_capped():
    program = Program()
    for t in range(50):
        program.task(name=f"t{t}", work=1.0)
    platform = Platform.pairwise([1.0] * 50, bandwidth=1.0)
    plan = plan_of(program, platform, [(t, 0, 0.0, 2.0) for t in range(50)])
    assert len(check(program, platform, plan)) == 50
    assert len(check(program, platform, plan, limit=50)) == 50
    capped = check(program, platform, plan, limit=10)
    assert [v.rule for v in capped] == ["duration"] * 10 + ["more"]
    assert "40 more" in capped[-1].message
    with pytest.raises(BadPlan) as caught:
        require_valid(program, platform, plan)
    text = str(caught.value)
    assert "50 violations" in text
    assert all(f"'t{t}'" in text for t in range(3))
    assert "'t3'" not in text


def test_messages_hold_the_values():
    (found,) = check(small(), ports(), changed(good(), "finish", 0, 3.5))
    assert str(found) == (
        "duration: task 't0' on host 'a', core 0, 2.0 to 3.5: takes 1.5 s, "
        "but work of 4.0 s at rate 2.0 takes 2.0 s"
    )
    (found,) = check(small(), ports(), changed(good(), "move_finish", 0, 1.5))
    assert str(found) == (
        "transfer: transfer of item 'x' from 'c' to 'a', 0.0 to 1.5: takes 1.5 s, "
        "but 200.0 bytes under contention 'fifo' take 2.0 s"
    )


def test_kinds_and_load_set_the_duration():
    program = Program()
    program.task(name="fft", work=6.0, kind="fft")
    platform = Platform((Site("s", (Host("a", 2.0, kinds={"fft": 4.0}, load=0.25),)),))
    assert rules(plan_of(program, platform, [(0, 0, 0.0, 2.0)])) == []
    assert rules(plan_of(program, platform, [(0, 0, 0.0, 3.0)])) == ["duration"]


def test_rounding_is_forgiven_late_in_a_long_plan():
    program = Program()
    first = program.task(name="first", work=1e-3)
    program.task(name="second", inputs=[first], work=1e-3)
    platform = Platform.pairwise([1.0], bandwidth=1.0)
    begin = 1e8 / 3
    end = np.nextafter(begin + 1e-3, math.inf)
    rows = [(0, 0, begin, end), (0, 0, np.nextafter(end, 0), end + 1e-3)]
    assert rules(plan_of(program, platform, rows)) == []
    rows[1] = (0, 0, end - 5e-4, end + 5e-4)
    assert rules(plan_of(program, platform, rows)) == ["order", "overlap"]


def test_an_empty_program():
    program = Program()
    program.input("x", size=3)
    assert rules(plan_of(program, ports(), [])) == []
