"""Hosts that pause, lose single copies, or join a platform that did not have them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.coordinator import Coordinator
from headrace.core.estimates import HistoryEstimates
from headrace.core.growth import with_host
from headrace.core.scheduler import Assign, Requeue
from headrace.model.constraints import Constraints
from headrace.model.events import (
    CopyLost,
    DataMoved,
    Event,
    HostJoined,
    HostLeft,
    HostPaused,
    Started,
    TaskFinished,
)
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.online.adapter import make_scheduler, obeying

SCHEDULERS = ["lheft", "workqueue", "dheft", "heft", "minmin"]


def random_program(rng: random.Random, tasks: int = 14) -> Program:
    program = Program("random")
    for k in range(tasks):
        read = rng.sample(range(k), min(k, rng.randint(0, 3)))
        program.task(
            None,
            inputs=[f"x{i}" for i in read],
            outputs={f"x{k}": float(rng.randint(0, 9) or 1)},
            work=1.0,
            name=f"t{k}",
        )
    return program


def make(program: Program, platform: Platform, scheduler: str) -> Coordinator:
    estimates = HistoryEstimates(program.graph, platform)
    return Coordinator(
        make_scheduler(scheduler), program.graph, platform, estimates=estimates, workers_queue=True
    )


class Workers:
    """Carry out assignments one task at a time, as real workers would; the oracle of what is where."""

    def __init__(self, program: Program, coordinator: Coordinator) -> None:
        self.graph, self.coordinator = program.graph, coordinator
        self.pin: dict[str, str] = {}
        self.copies: dict[str, set[str]] = {}
        self.paused: set[str] = set()
        self.gone: set[str] = set()
        self.now = 0.0
        self.executed = 0
        self.tell(Started(0.0))

    def tell(self, *events: Event) -> None:
        for command in self.coordinator.handle(events):
            if isinstance(command, Assign):
                assert command.host not in self.gone | self.paused
                self.pin[command.task] = command.host
            elif isinstance(command, Requeue):
                self.pin.pop(command.task, None)
        self.coordinator.validate_state()

    def step(self, rng: random.Random) -> bool:
        """Finish one task whose inputs exist; False if there is none."""
        names = self.graph.item_names
        can = [
            task
            for task in sorted(self.pin)
            if all(self.copies.get(names[i]) for i in self.graph.reads_of(self._number(task)).tolist())
        ]
        if not can:
            return False
        task = rng.choice(can)
        host, self.now = self.pin.pop(task), self.now + 1.0
        events: list[Event] = []
        for i in self.graph.reads_of(self._number(task)).tolist():
            if host not in self.copies[names[i]]:
                events.append(DataMoved(self.now, names[i], min(self.copies[names[i]]), host, self.now, 1.0))
                self.copies[names[i]].add(host)
        for i in self.graph.writes_of(self._number(task)).tolist():
            self.copies.setdefault(names[i], set()).add(host)
        self.executed += 1
        self.tell(*events, TaskFinished(self.now, task, host, self.now - 1.0))
        return True

    def _number(self, task: str) -> int:
        return self.coordinator.view.task_number[task]

    def leave(self, host: str) -> None:
        self.gone.add(host)
        self.paused.discard(host)
        self.pin = {task: at for task, at in self.pin.items() if at != host}
        for held in self.copies.values():
            held.discard(host)
        self.tell(HostLeft(self.now, host))

    def join(self, host: str) -> None:
        if host not in self.coordinator.view.host_number:
            assert self.coordinator.grow(Host(host, 2.0))
            self.coordinator.validate_state()
        self.gone.discard(host)
        self.paused.discard(host)
        self.tell(HostJoined(self.now, host))

    def pause(self, host: str) -> None:
        self.paused.add(host)
        self.pin = {task: at for task, at in self.pin.items() if at != host}
        self.tell(HostPaused(self.now, host))

    def lose_copy(self, rng: random.Random) -> None:
        held = sorted((item, host) for item, hosts in self.copies.items() for host in hosts)
        if held:
            item, host = rng.choice(held)
            self.copies[item].discard(host)
            self.tell(CopyLost(self.now, item, host))


def platforms() -> list[Platform]:
    site = Site("lab", (Host("h0"), Host("h1", 2.0)), bandwidth=1e6)
    return [
        Platform.pairwise([1.0, 2.0], bandwidth=1e6),
        Platform((site,), name="sites"),
    ]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_run_ends_whatever_happens_to_hosts_and_copies(scheduler: str, seed: int) -> None:
    rng = random.Random(seed)
    program, platform = random_program(rng), rng.choice(platforms())
    run = Workers(program, make(program, platform, scheduler))
    for k in range(12):
        for _ in range(rng.randint(0, 3)):
            run.step(rng)
        hosts = [h.name for h in run.coordinator.view.platform.hosts]
        up = [h for h in hosts if h not in run.gone | run.paused]
        what = rng.choice(["leave", "pause", "copy", "join", "back"])
        if what == "leave" and len(up) > 1:
            run.leave(rng.choice(up))
        elif what == "pause" and len(up) > 1:
            run.pause(rng.choice(up))
        elif what == "copy":
            run.lose_copy(rng)
        elif what == "join":
            run.join(f"new{k}")
        elif what == "back" and run.gone | run.paused:
            run.join(rng.choice(sorted(run.gone | run.paused)))
    while run.step(rng):
        pass
    assert run.coordinator.view.done.all()


def test_a_new_host_is_used_at_once() -> None:
    program = Program("bag")
    for k in range(8):
        program.task(None, outputs={f"x{k}": 1.0}, work=1.0, name=f"t{k}")
    for scheduler in SCHEDULERS:
        run = Workers(program, make(program, Platform.pairwise([1.0, 1.0], bandwidth=1e6), scheduler))
        run.step(random.Random(1))
        run.join("new")
        assert "new" in run.pin.values(), scheduler


def test_what_a_paused_host_finishes_counts() -> None:
    program = Program("one")
    program.task(None, outputs={"x": 1.0}, work=1.0, name="t")
    coordinator = make(program, Platform.pairwise([1.0, 1.0], bandwidth=1e6), "lheft")
    coordinator.handle([Started(0.0)])
    coordinator.handle([HostPaused(0.5, "h0")])
    coordinator.handle([TaskFinished(1.0, "t", "h0", 0.0)])
    assert coordinator.view.done.all()
    coordinator.validate_state()


def test_a_scheduler_under_constraints_keeps_its_platform() -> None:
    program = Program("bag")
    program.task(None, outputs={"x": 1.0}, work=1.0, name="t")
    platform = Platform.pairwise([1.0, 1.0], bandwidth=1e6)
    scheduler = obeying(make_scheduler("lheft"), Constraints.none(1, 2))
    assert not Coordinator(scheduler, program.graph, platform, workers_queue=True).grow(Host("new"))


def test_with_host_keeps_numbers() -> None:
    for platform in platforms():
        grown = with_host(platform, Host("new", 3.0))
        assert [h.name for h in grown.hosts] == [*(h.name for h in platform.hosts), "new"]
        assert grown.network.bandwidth(0, grown.place_of["new"]) == pytest.approx(1e6)
