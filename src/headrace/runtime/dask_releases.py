"""Release times in a real run: a task that is not released yet has no worker, whatever its host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.runtime.dask_pins import NOWHERE

if TYPE_CHECKING:
    from headrace.model.graph import Graph
    from headrace.runtime.graph import Layout


class Releases:
    """The tasks of a run that are not released yet.

    >>> from headrace.model.program import Program
    >>> program = Program()
    >>> _ = program.task(None, name="a", release=2.0), program.task(None, name="b")
    >>> releases = Releases(program.graph)
    >>> releases.next(), releases.take(1.0), releases.take(2.0), releases.next()
    (2.0, [], ['a'], None)
    """

    def __init__(self, graph: Graph) -> None:
        times = zip(graph.task_names, graph.release.tolist(), strict=True)
        self.pending = {task: float(release) for task, release in times if release > 0}

    def next(self) -> float | None:
        """The next release; None if there is none."""
        return min(self.pending.values(), default=None)

    def take(self, now: float) -> list[str]:
        """The tasks that are released by now; they are no longer pending."""
        due = [task for task, release in self.pending.items() if release <= now]
        for task in due:
            del self.pending[task]
        return due


def hold_unreleased(scheduler: Any, layout: Layout, releases: Releases) -> None:
    """In a run without a scheduler of ours: keep tasks from starting."""
    for key, task in layout.tasks.items():
        if task in releases.pending:
            scheduler.tasks[key].worker_restrictions = {NOWHERE}


def let_start(scheduler: Any, layout: Layout, tasks: list[str], stimulus: str) -> None:
    """In a run without a scheduler of ours: tasks may start anywhere."""
    released, moves = set(tasks), {}
    for key, task in layout.tasks.items():
        state = scheduler.tasks.get(key) if task in released else None
        if state is not None:
            state.worker_restrictions = set()
            if state.state == "no-worker":
                moves[key] = "processing"
    if moves:
        scheduler.transitions(moves, stimulus_id=stimulus)
