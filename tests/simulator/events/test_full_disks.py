"""Disks that are full of inputs and results that have had their last use there do not stop a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.model.plan import Plan
from headrace.planners.coschedule.planner import Coschedule
from headrace.report.resources import disk_levels
from headrace.testing.invariants import judge
from simulator.made_plan import Made

LAB = hr.Platform(
    (hr.Site("s1", (hr.Host("h1"),), storage=60.0),), contention="fifo", routing="links", name="lab"
)


def some(quick: Iterable[int], slow: Iterable[int]) -> list[Any]:
    """Seeds for every change, and more for the slow suite."""
    return [*quick, *(pytest.param(seed, marks=pytest.mark.slow) for seed in slow)]


def two_jobs(read: float, first: float, second: float, sites: list[str] | None = None) -> hr.Program:
    """One reads a file at the only site; its result and that of the other go to `sites`."""
    program = hr.Program("two")
    program.input("file", size=read, sites=["s1"])
    for name, size, work, inputs in (("a", first, 5.0, ["file"]), ("b", second, 20.0, [])):
        made = program.task(None, inputs=inputs, outputs={f"{name}.out": size}, work=work, name=name)
        program.output(made, sites=sites or ())
    return program


@pytest.mark.parametrize(
    ("read", "first", "second", "sites"),
    [
        (25.0, 12.0, 30.0, None),
        (25.0, 1.0, 35.0, None),
        (1.0, 25.0, 40.0, None),
        (25.0, 25.0, 30.0, ["s1"]),
    ],
)
def test_what_has_had_its_last_use_does_not_count(
    read: float, first: float, second: float, sites: list[str] | None
) -> None:
    program = two_jobs(read, first, second, sites)
    plan = hr.plan(program, LAB, Coschedule(time=0.5))
    assert hr.check(program, LAB, plan) == []
    run = hr.simulate(program, LAB, Coschedule(time=0.5))
    assert run.makespan == pytest.approx(plan.makespan) == 25.0


def random_grid(seed: int) -> tuple[hr.Program, hr.Platform]:
    """Jobs with shared files and results of every kind, on sites with large but limited disks."""
    random = np.random.default_rng([seed, 77])
    sites = [f"s{k}" for k in range(int(random.integers(2, 4)))]

    def some(most: int) -> list[str]:
        return list(random.choice(sites, int(random.integers(1, most + 1)), replace=False))

    def size() -> float:
        return float(random.integers(1, 40))

    program = hr.Program(f"random-{seed}")
    jobs = int(random.integers(4, 9))
    files = [program.input(f"file{k}", size=size(), sites=some(2)) for k in range(jobs)]
    for k in range(jobs):
        read = random.choice(jobs, int(random.integers(0, 3)), replace=False).tolist()
        made = program.task(
            None,
            inputs=[files[i] for i in read],
            outputs={f"out{k}": size()},
            work=float(random.integers(2, 30)),
            name=f"job{k}",
        )
        program.output(made, sites=some(2) if random.random() < 0.4 else ())
    places = tuple(hr.Site(name, tuple(hr.Host(f"{name}{h}") for h in "ab"), storage=1e4) for name in sites)
    links = tuple(
        hr.Link(a, b, float(random.integers(2, 20)), shared=bool(random.integers(2)))
        for k, a in enumerate(sites)
        for b in sites[k + 1 :]
    )
    return program, hr.Platform(places, links, contention="fifo", routing="links", name="full")


def full_disks(seed: int) -> tuple[hr.Program, hr.Platform, Plan]:
    """The same with disks as large as a plan for the large ones needs, and that plan."""
    program, platform = random_grid(seed)
    plan = hr.plan(program, platform, Coschedule(time=0.5))
    peaks = [level.peak for _, level in disk_levels(plan)]
    sites = [
        replace(site, storage=peak if peak > 0 else 1.0)
        for site, peak in zip(platform.sites, peaks, strict=True)
    ]
    full = replace(platform, sites=tuple(sites))
    return program, full, replace(plan, platform=full)


@pytest.mark.parametrize("seed", some(range(6), range(6, 30)))
def test_a_valid_plan_is_carried_out_on_full_disks(seed: int) -> None:
    program, platform, plan = full_disks(seed)
    assert hr.check(program, platform, plan) == []
    run = hr.simulate(program, platform, Made(plan))
    assert judge(run) == []
    assert run.makespan == pytest.approx(plan.makespan, rel=0.02)
    assert (run.executed.host == plan.host).all()


@pytest.mark.parametrize("replan", ["both", "neither"])
@pytest.mark.parametrize("seed", some((0, 3), (5, 12, 17)))
def test_a_lost_host_does_not_stop_a_run_on_full_disks(seed: int, replan: str) -> None:
    """Nothing was thrown away that is needed then; each site has another host."""
    program, platform, plan = full_disks(seed)
    lost = platform.hosts[int(plan.host[np.argsort(plan.start)[len(plan.host) // 2]])].name
    config = hr.SimulationConfig(hr.ReplanPolicy(replan=replan), faults=f"kill={lost}@30%")
    run = hr.simulate(program, platform, Coschedule(time=0.3), config)
    assert (run.executed.finish > 0).all()
    assert run.makespan >= plan.bound * (1 - 1e-9)


def test_what_is_read_again_after_a_loss_is_still_there() -> None:
    """The only copy of a file that no longer counts, and of what was made from it, at a disk that is lost."""
    program = hr.Program("again")
    program.input("file", size=25.0, sites=["s1"])
    middle = program.task(None, inputs=["file"], outputs={"middle": 5.0}, work=5.0, name="a", kind="near")
    program.task(None, outputs={"large": 35.0}, work=20.0, name="b", kind="near")
    program.task(None, inputs=[middle], outputs={"end": 1.0}, work=40.0, name="c", kind="far")
    near = hr.Site("s1", (hr.Host("h1", kinds={"far": 0.01}),), storage=60.0)
    far = hr.Site("s2", tuple(hr.Host(f"f{k}", kinds={"near": 0.01}) for k in range(2)), bandwidth=10.0)
    platform = hr.Platform((near, far), (hr.Link("s1", "s2", 10.0),), contention="fifo", name="two")
    plan = hr.plan(program, platform, "heft")
    assert hr.check(program, platform, plan) == []
    lost = platform.hosts[int(plan.host[2])].name
    assert lost != "h1"
    config = hr.SimulationConfig(faults=f"kill={lost}@80%")
    run = hr.simulate(program, platform, "heft", config)
    assert run.makespan > plan.makespan


@pytest.mark.parametrize("scheduler", ["workqueue", "heft", "lheft", "sufferage", "coschedule"])
def test_a_task_without_room_for_its_output_lets_another_one_go_first(scheduler: str) -> None:
    """The file counts until the task that reads it has finished: there is no room for the output of `a` till then."""
    program = hr.Program("three")
    program.input("file", size=25.0, sites=["s1"])
    middle = program.task(None, outputs={"middle": 40.0}, work=5.0, name="a")
    program.task(None, inputs=["file"], outputs={"b.out": 1.0}, work=5.0, name="b")
    program.task(None, inputs=[middle], outputs={"c.out": 1.0}, work=5.0, name="c")
    site = hr.Site("s1", (hr.Host("h1", cores=2),), storage=60.0)
    platform = hr.Platform((site,), contention="fifo", routing="links", name="lab")
    run = hr.simulate(program, platform, scheduler)
    assert run.executed.start.tolist() == [5.0, 0.0, 10.0]
