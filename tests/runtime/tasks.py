"""Task bodies that workers import, schedulers that pin, and small helpers for the tests of run/."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headrace.core.scheduler import EVERY_EVENT, ON_GRID_CHANGES, Assign, WakeConditions
from headrace.core.view import RunView
from headrace.model.events import CopyLost, Event, HostJoined, HostLeft, Started, TaskFinished
from headrace.model.program import Program


class RoundRobin:
    """Pins tasks to hosts in turn; plans again when a host leaves or joins, or data is lost."""

    name = "round robin"
    wake = ON_GRID_CHANGES

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        if not any(isinstance(e, Started | HostLeft | HostJoined | CopyLost) for e in events):
            return []
        problem = view.problem()
        hosts = [host.name for host in problem.platform.hosts]
        order = problem.graph.order.tolist()
        return [
            Assign(problem.graph.task_names[t], hosts[rank % len(hosts)], float(rank))
            for rank, t in enumerate(order)
        ]


class OneHost:
    """Everything on one host; ranks as given, by task name."""

    name = "one host"
    wake = ON_GRID_CHANGES

    def __init__(self, host: str, ranks: dict[str, float]) -> None:
        self.host = host
        self.ranks = ranks

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        if not any(isinstance(e, Started) for e in events):
            return []
        return [Assign(task, self.host, self.ranks.get(task, 0.0)) for task in view.graph.task_names]


class Online:
    """Decides only when a task becomes ready: always the last host."""

    name = "online"
    wake = EVERY_EVENT

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        graph = view.graph
        host = [h.name for h in view.platform.hosts if h.name not in view.down][-1]
        ready = [
            t
            for t in range(graph.n_tasks)
            if not view.done[t]
            and all(graph.producer[i] < 0 or view.done[graph.producer[i]] for i in graph.reads_of(t))
        ]
        return [Assign(graph.task_names[t], host, float(t)) for t in ready]


class Lazy(Online):
    """Gives a host to the first task and to none after it."""

    name = "lazy"

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        return super().react(view, events) if any(isinstance(e, Started) for e in events) else []


class Later:
    """Places a task every fifth of a second, by the clock alone."""

    name = "later"

    def __init__(self) -> None:
        self.wake = WakeConditions(at=0.2)

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        if view.time < self.wake.at:
            return []
        self.wake = WakeConditions(at=view.time + 0.2)
        host = view.platform.hosts[0].name
        return [Assign(view.graph.task_names[t], host, float(t)) for t in view.ready().tolist()[:1]]


def one() -> int:
    return 1


def increment(value: int) -> int:
    return value + 1


def add(*values: int) -> int:
    return sum(values)


def nap(seconds: float, *values: int) -> int:
    time.sleep(seconds)
    return sum(values) + 1


def boom(*values: Any) -> None:
    raise ValueError("the bottom fell out")


def split(text: str) -> tuple[str, str]:
    head, tail = text.split(" ", 1)
    return head, tail


def read_path(path: Path) -> str:
    writable = os.access(path, os.W_OK) and os.geteuid() != 0
    return f"{path.suffix} {path.stat().st_mode & 0o777:o} {writable} {path.read_text()}"


def spin(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def layered(width: int, depth: int, seconds: float) -> tuple[Program, int]:
    """Levels of tasks that nap and each read three of the level above; and the right answer."""
    program = Program("layered")
    pause = program.input("pause", value=seconds)
    values: list[list[int]] = []
    for level in range(depth):
        row = []
        for i in range(width):
            above = [(i + k) % width for k in range(3)] if level else []
            program.task(
                nap,
                inputs=[pause, *(f"x{level - 1}.{j}" for j in above)],
                outputs=[f"x{level}.{i}"],
                name=f"t{level}.{i}",
                work=seconds,
            )
            row.append(1 + sum(values[-1][j] for j in above))
        values.append(row)
    program.task(add, inputs=[f"x{depth - 1}.{i}" for i in range(width)], outputs=["answer"], name="add")
    program.output("answer")
    return program, sum(values[-1])


def finished(events: Sequence[Event]) -> list[TaskFinished]:
    return [e for e in events if isinstance(e, TaskFinished)]


def killer(pids: dict[str, int], victims: dict[int, str]) -> Callable[[Event], None]:
    """An observer that kills a worker, by its own id, when so many tasks have finished."""
    count = 0

    def observe(event: Event) -> None:
        nonlocal count
        count += isinstance(event, TaskFinished)
        for after in [after for after in victims if count >= after]:
            os.kill(pids[victims.pop(after)], signal.SIGKILL)

    return observe


def alive(pid: int) -> bool:
    """Whether a process exists and is not just waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_file(path: str) -> int:
    end = time.monotonic() + 60
    while not Path(path).exists() and time.monotonic() < end:
        time.sleep(0.02)
    return int(Path(path).exists())


def start_sleeper(groups: int) -> subprocess.Popen[bytes]:
    """A session whose leader has started sleepers, each in its own process group; it prints their ids."""
    code = (
        "import subprocess, time, sys\n"
        f"made = [subprocess.Popen(['sleep', '100'], process_group=0).pid for _ in range({groups})]\n"
        "print(*made, flush=True)\n"
        "time.sleep(100)\n"
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
