"""Generated programs and platforms: plans that are right pass, and anything moved earlier is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headrace.model.graph import Graph, make_graph
from headrace.model.plan import Plan
from headrace.model.platform import CONTENTIONS, Host, Platform, Site
from headrace.testing.generate import NETWORKS, ORIGINS, SHAPES, cases, random_platform, random_program

from .plans import changed, eager_plan, rules, serial_plan

quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)
seeds = st.integers(0, 10**6)


@st.composite
def problems(draw) -> tuple[Graph, Platform, int]:
    seed = draw(seeds)
    program = random_program(seed, draw(st.integers(1, 25)), draw(st.sampled_from(SHAPES)))
    platform = random_platform(
        seed,
        draw(st.sampled_from(NETWORKS)),
        contention=draw(st.sampled_from(CONTENTIONS)),
        hosts=draw(st.integers(1, 6)),
        origin=draw(st.sampled_from(ORIGINS)),
    )
    return program.graph, platform, seed


def shift(plan: Plan, prefix: str, index: int, by: float) -> Plan:
    plan = changed(plan, f"{prefix}start", index, getattr(plan, f"{prefix}start")[index] - by)
    return changed(plan, f"{prefix}finish", index, getattr(plan, f"{prefix}finish")[index] - by)


@quick
@given(problems(), seeds)
def test_a_serial_plan_passes_on_every_host(problem, number):
    graph, platform, _ = problem
    host = number % len(platform.hosts)
    plan = serial_plan(graph, platform, host, core=number % platform.hosts[host].cores)
    assert rules(plan) == []
    assert rules(replace(plan, bound=plan.makespan * 1.001 + 1e-9)) == ["bound"]


@quick
@given(problems(), seeds, st.floats(0.01, 0.99))
def test_a_start_moved_earlier_is_found(problem, number, share):
    graph, platform, _ = problem
    plan = serial_plan(graph, platform, number % len(platform.hosts))
    task = number % graph.n_tasks
    early = changed(plan, "start", task, plan.start[task] - share)
    assert "duration" in rules(early)
    before = np.flatnonzero((plan.finish == plan.start[task]) & (plan.finish > plan.start))
    assume(len(before) and graph.work[task] > 0)
    room = min(plan.finish[t] - plan.start[t] for t in (int(before[0]), task))
    assert "overlap" in rules(shift(plan, "", task, share * float(room)))


@quick
@given(problems(), seeds)
def test_an_eager_plan_passes_and_nothing_in_it_can_come_earlier(problem, number):
    graph, platform, seed = problem
    plan = eager_plan(graph, platform, seed)
    assert rules(plan) == []
    for prefix, reasons in (
        ("", {"input", "order", "overlap", "start"}),
        ("move_", {"source", "link", "start"}),
    ):
        lasting = getattr(plan, f"{prefix}finish") - getattr(plan, f"{prefix}start")
        if prefix and platform.contention == "fair":
            continue  # there transfers wait for each other without need
        candidates = np.flatnonzero(lasting > 1e-6)
        if len(candidates):
            index = int(candidates[number % len(candidates)])
            assert reasons & set(rules(shift(plan, prefix, index, float(lasting[index]) / 2)))


def test_all_combinations_are_generated_and_can_be_planned():
    seen = set()
    for program, platform in cases(225, seed=4):
        assert rules(serial_plan(program.graph, platform, host=len(platform.hosts) - 1)) == []
        shape = next(s for s in SHAPES if program.name.startswith(s))
        network = next(n for n in NETWORKS if platform.name.startswith(n))
        origin = next(
            o for o in ORIGINS if f"-{o}-" in platform.name.replace(f"-{platform.contention}", "", 1)
        )
        seen.add((shape, network, platform.contention, origin))
        assert (platform.network.route_bandwidth > 0).all()
        assert (platform.origin is None) == (origin == "none")
    assert len(seen) == 225


def test_generated_problems_use_everything_the_model_has():
    graphs, platforms = zip(*((p.graph, m) for p, m in cases(60, seed=1)), strict=True)
    assert any((g.work == 0).any() for g in graphs)
    assert any(((g.size == 0) & (g.producer >= 0)).any() for g in graphs)
    assert any(name.endswith(".finished") for g in graphs for name in g.item_names)
    assert any((np.diff(g.reader_ptr) > 1).any() for g in graphs)
    assert any((g.result & (np.diff(g.reader_ptr) > 0)).any() for g in graphs)
    hosts = [h for m in platforms for h in m.hosts]
    assert {h.cores for h in hosts} == {1, 2, 3, 4}
    assert any(h.kinds for h in hosts)
    assert any(h.load for h in hosts)
    assert any(link.shared for m in platforms for link in m.links)
    assert any(link.oneway for m in platforms for link in m.links)
    assert any(np.diff(m.network.route_ptr).max() > 1 for m in platforms)
    assert any(np.isfinite(m.network.storage).any() for m in platforms)


def test_the_same_seed_gives_the_same_case():
    def text(seed: int) -> list[str]:
        pairs = cases(20, seed)
        return [f"{p.tasks} {p.data} {m.sites} {m.links} {m.pairs and m.pairs.bandwidth}" for p, m in pairs]

    assert text(7) == text(7)
    assert text(7) != text(8)


@pytest.mark.parametrize("contention", ["none", "fifo"])
def test_a_large_plan(contention):
    """Nineteen thousand transfers through 64 ports, and one mistake among them."""
    hosts, chain = 64, 300
    n = hosts * chain
    task = np.arange(n)
    step, lane = task // hosts, task % hosts
    graph = make_graph(
        work=np.ones(n),
        size=np.full(n, 100.0),
        producer=task,
        read_ptr=np.concatenate((np.zeros(hosts + 1, int), np.arange(1, n - hosts + 1))),
        reads=task[: n - hosts],
    )
    site = Site("s", tuple(Host(f"h{i}") for i in range(hosts)), bandwidth=100.0, storage=1e9)
    platform = Platform((site,), contention=contention)
    start = 2.0 * step
    host = ((lane + step) % hosts).astype(np.int32)
    moved = task[: n - hosts]
    plan = Plan(
        graph,
        platform,
        "by hand",
        host=host,
        core=np.zeros(n, np.int32),
        start=start,
        finish=start + 1.0,
        move_item=moved.astype(np.int32),
        move_source=host[moved],
        move_target=host[moved + hosts],
        move_start=start[moved] + 1.0,
        move_finish=start[moved] + 2.0,
    )
    assert rules(plan) == []
    assert rules(changed(plan, "move_source", 12345, (plan.move_source[12345] + 2) % hosts)) == (
        ["source"] if contention == "none" else ["link", "source"]
    )
