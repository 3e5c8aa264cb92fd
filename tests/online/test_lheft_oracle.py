"""The compiled L-HEFT decides as the plain one does, at every moment of runs in which much happens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import headrace as hr
from headrace.core.estimates import HistoryEstimates
from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.scheduler import AssignMany
from headrace.core.view import RunView
from headrace.experiment.dataflow import fft, jacobi
from headrace.model.behaviour import Change
from headrace.model.events import Event
from headrace.model.trace import Trace
from headrace.online.lheft import LHeft
from headrace.simulator.events.backend import simulate_scheduler
from headrace.testing.invariants import judge

from .lheft_oracle import Plain


class Compared(LHeft):
    """Asks the plain one as well."""

    compared = moved = 0

    def react(self, view: RunView, events: Sequence[Event]) -> list[AssignMany]:
        waits = len(view.ready()) > 0
        plain = Plain(view).placed() if waits else Plain(view).moved()
        answers = super().react(view, events)
        if plain or answers:
            (answer,) = answers
            given = list(zip(answer.tasks.tolist(), answer.hosts.tolist(), strict=True))
            assert given == plain
            ranks: dict[int, list[float]] = {}
            for (_, host), rank in zip(given, answer.ranks.tolist(), strict=True):
                ranks.setdefault(host, []).append(rank)
            assert not waits or all(mine == sorted(mine) for mine in ranks.values())
            levels = [int(view.graph.level[t]) for t, _ in plain]
            assert (answer.ranks // 2**32).tolist() == levels, "queues are in order of levels first"
            if waits:
                self.compared += len(plain)
            else:
                self.moved += len(plain)
        return answers


def layered(seed: int) -> hr.Program:
    """Layers of tasks that read some of the layer before, of different kinds, sizes and widths."""
    rng = np.random.default_rng(seed)
    program = hr.Program()
    before: list[object] = []
    for layer in range(5):
        made = []
        for k in range(int(rng.integers(2, 9))):
            some = [before[i] for i in rng.permutation(len(before))[: int(rng.integers(0, 4))]]
            if rng.random() < 0.4:
                some.append(program.input(f"in{layer}.{k}", size=float(rng.choice([1e4, 1e6]))))
            made.append(
                program.task(
                    None,
                    name=f"t{layer}.{k}",
                    kind=str(rng.choice(["a", "b"])),
                    inputs=some,
                    outputs={f"x{layer}.{k}": float(rng.choice([1e3, 1e5, 1e6]))},
                    work=float(rng.choice([0.5, 1.0, 2.0])),
                    cores=int(rng.choice([1, 1, 2])),
                )
            )
        before = made
    return program


def lab(seed: int) -> hr.Platform:
    rng = np.random.default_rng([seed, 1])
    hosts = tuple(
        hr.Host(f"h{h}", speed=float(rng.choice([0.5, 1.0, 1.0, 2.0])), cores=int(rng.integers(1, 4)))
        for h in range(3)
    )
    own = hr.Site("own", (*hosts, hr.Host("wide", cores=2)), bandwidth=1e6, uplink=2e6)
    contention = str(rng.choice(["none", "fifo", "fair"]))
    if seed % 2:
        return hr.Platform((own,), contention=contention)  # type: ignore[arg-type]
    home = hr.Site("home", uplink=3e6)
    return hr.Platform((home, own), contention=contention, origin="home")  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(25))
def test_placing_is_that_of_the_plain_algorithm(seed: int) -> None:
    program, platform = layered(seed).graph, lab(seed)
    rng = np.random.default_rng([seed, 2])
    changes = [
        Change(1.0, "host-trace", "h0", Trace.constant(0.3)),
        Change(float(rng.uniform(1, 4)), "host-down", "h1"),
        Change(float(rng.uniform(4, 6)), "host-up", "h1"),
        Change(2.5, "host-up", "h2"),
    ]
    scheduler = Compared(buffer=int(rng.choice([1, 3, 64])), idle_within=float(rng.choice([0.0, 0.5])))
    run = simulate_scheduler(
        program,
        platform,
        scheduler,
        changes=changes,
        estimates=HistoryEstimates(program, platform) if seed % 2 else None,
        policy=ExecutionPolicy(replicate=2 if seed % 3 == 0 else 0),
    )
    assert scheduler.compared >= program.n_tasks
    assert judge(run, changes) == []


@pytest.mark.parametrize("program", [jacobi(iterations=5, pieces=8), fft(points=2**14, pieces=8)])
def test_the_papers_applications_are_placed_as_by_the_plain_algorithm(program: hr.Program) -> None:
    platform = hr.Platform.pairwise([1.0, 0.7, 1.6, 1.0], bandwidth=1e7, latency=1e-4)
    scheduler = Compared()
    simulate_scheduler(program.graph, platform, scheduler)
    assert scheduler.compared == program.graph.n_tasks


def test_moves_from_tails_are_those_of_the_plain_algorithm() -> None:
    """Readers pile up where their data is; hosts of other speeds and cores take them off."""
    moved = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        program = hr.Program()
        for group in range(3):
            made = program.task(None, outputs={f"x{group}": 1e6}, work=1.0 + group)
            for k in range(int(rng.integers(3, 12))):
                work = float(rng.choice([0.2, 1.0, 5.0]) * rng.uniform(0.9, 1.1))  # no ties
                some = {"outputs": {f"y{group}.{k}": 1.0}, "work": work}
                program.task(None, inputs=[made], cores=int(rng.choice([1, 1, 2])), **some)
        platform = lab(seed)
        scheduler = Compared()
        run = simulate_scheduler(program.graph, platform, scheduler)
        assert judge(run) == []
        moved += scheduler.moved
    assert moved > 20


def test_levels_are_those_of_the_papers_definition() -> None:
    """Level 0 has no predecessors; any other one predecessor in the level before and none later."""
    for seed in range(10):
        graph = layered(seed).graph
        for task in range(graph.n_tasks):
            makers = [int(graph.producer[i]) for i in graph.reads_of(task).tolist() if graph.producer[i] >= 0]
            assert graph.level[task] == 1 + max((int(graph.level[m]) for m in makers), default=-1)
