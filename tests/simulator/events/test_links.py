"""Transfers that go link by link: items are passed on from site to site."""

import pytest

import headrace as hr
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.simulate import simulate_program
from headrace.testing.invariants import judge


def chain(contention: str) -> hr.Platform:
    sites = [
        hr.Site("store"),
        hr.Site("middle"),
        hr.Site("far", (hr.Host("f", cores=2),)),
        hr.Site("near", (hr.Host("n", cores=1),)),
    ]
    links = [
        hr.Link("store", "middle", 1e6),
        hr.Link("middle", "far", 2e6),
        hr.Link("store", "near", 1e5),
    ]
    return hr.Platform(
        tuple(sites), tuple(links), contention=contention, origin="store", routing="links", name="chain"
    )


def jobs(count: int = 6) -> hr.Program:
    program = hr.Program("jobs")
    for k in range(count):
        raw = program.input(f"raw{k}", size=2e6)
        made = program.task(None, name=f"job{k}", inputs=[raw], outputs={f"out{k}": 1e6}, work=5.0)
        program.output(made)
    return program


@pytest.mark.parametrize("contention", ["none", "fifo", "fair"])
@pytest.mark.parametrize("scheduler", ["workqueue", "lheft"])
def test_items_are_passed_on_over_several_links(contention: str, scheduler: str) -> None:
    run = simulate_program(jobs(), chain(contention), scheduler)
    assert judge(run) == []
    places = run.platform.network.place_names
    ways = {
        (places[int(a)], places[int(b)])
        for a, b in zip(run.executed.move_source, run.executed.move_target, strict=True)
    }
    assert ("store", "middle") in ways
    assert ("middle", "far") in ways
    assert ("store", "far") not in ways


def test_the_first_job_takes_the_time_of_both_links() -> None:
    run = simulate_program(jobs(1), chain("fifo"), "lheft")
    # 2 s and 1 s in, 5 s of work, 0.5 s and 1 s back
    assert run.makespan == pytest.approx(9.5)


def test_co_scheduled_jobs_are_planned_again_when_a_host_goes() -> None:
    setting = SimulationConfig(policy=hr.ReplanPolicy(events="once"), faults="kill=f@30%")
    run = simulate_program(jobs(4), chain("fifo"), "coschedule", setting, time=0.5)
    assert run.plans > 1
    assert len(run.executed.start) == 4
