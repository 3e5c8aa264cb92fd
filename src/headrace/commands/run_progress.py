"""The progress of a real run on stderr: a bar on a terminal, elsewhere a line for each tenth of the tasks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headrace.arrays.compile_notice import SILENT, Notice, compile_notice
from headrace.commands.console import is_quiet
from headrace.model.events import Event, HostLeft, RuleDropped, TaskErred, TaskFinished
from headrace.model.plan import Plan
from headrace.model.units import show_time

if TYPE_CHECKING:
    from headrace.sweeping import PointProgress


@contextmanager
def watching(
    tasks: int, events: list[Event], *, resumed: bool = False, sweeping: bool = False
) -> Iterator[dict[str, Any]]:
    """Parameters `observe`, `planned` and `say` of a run that show its progress and collect its events.

    Also `left` for a run that is `resumed`, and `started` for an experiment, to be called with its `PointProgress`.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    terminal = sys.stderr.isatty() and not is_quiet()
    notice = SILENT if is_quiet() else Notice(progress=lambda text: None)
    with (
        Progress(*columns, console=Console(stderr=True), disable=not terminal, transient=True) as bar,
        compile_notice(notice),
    ):
        shown = _Shown(bar, tasks, terminal)

        def observe(event: Event) -> None:
            events.append(event)
            shown.advance(event)

        listeners = {"observe": observe, "planned": shown.planned, "say": shown.say}
        more = ({"left": shown.left} if resumed else {}) | ({"started": shown.started} if sweeping else {})
        yield listeners | more


class _Shown:
    """What the user sees of a run."""

    def __init__(self, bar: Any, tasks: int, terminal: bool) -> None:
        self.bar = bar
        self.tasks = tasks
        self.terminal = terminal
        self.line = bar.add_task("starting workers", total=tasks)
        self.finished: set[str] = set()
        self.committed = 0
        """Tasks that were committed before this session."""
        self.failed = False
        self.points: PointProgress | None = None
        """Of an experiment."""

    def say(self, text: str) -> None:
        if is_quiet():
            return
        self.bar.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def planned(self, plan: Plan | None) -> None:
        text = "running" if plan is None else f"running (planned {show_time(plan.makespan)})"
        self.bar.update(self.line, description=text)

    def started(self, points: PointProgress) -> None:
        """An experiment begins."""
        self.points, self.tasks = points, points.tasks
        self.bar.update(self.line, total=max(1, points.tasks))
        self.say(
            f"{points.complete} of {points.points} combinations are complete, {points.tasks} tasks to run"
        )

    def left(self, number: int) -> None:
        """A run is resumed, and this many tasks are left."""
        self.committed = self.tasks - number
        self.bar.update(self.line, completed=self.committed)
        self.say(f"{self.committed} of {self.tasks} tasks are committed, {number} are left to run")

    def advance(self, event: Event) -> None:
        match event:
            case HostLeft(host=host):
                self.say(f"worker {host} is gone; its tasks were moved to other workers")
            case TaskErred(task=task, host=host, attempt=attempt, again=True, error=error):
                reason = error.strip().splitlines()[-1]
                self.say(f"task {task} failed on {host} (attempt {attempt}), and is tried again: {reason}")
            case TaskErred(task=task, host=host) if not self.failed:
                self.failed = True
                self.say(
                    f"task {task} failed on {host}: tasks that are running may finish, no other is started"
                )
            case RuleDropped():
                self.say(str(event))
            case TaskFinished(task=task) if task not in self.finished:
                self.finished.add(task)
                self._show_count(self.committed + len(self.finished))

    def _show_count(self, done: int) -> None:
        self.bar.update(self.line, completed=done)
        tenth = done * 10 // self.tasks > (done - 1) * 10 // self.tasks
        if not self.terminal and not is_quiet() and self.tasks >= 10 and tenth:
            sys.stderr.write(f"{done} of {self.tasks} tasks{self._of_points()}\n")
        if self.points is not None and self.terminal:
            self.bar.update(self.line, description=f"running{self._of_points()}")

    def _of_points(self) -> str:
        return "" if self.points is None else f", {self.points.complete} of {self.points.points} combinations"
