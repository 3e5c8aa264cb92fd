"""Execute experiments: each distinct task once, over all combinations and over what earlier runs have kept."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.execution import Listeners, Run, carry_out, finish_run, result_files
from headrace.experiment.sweep.merge import Merged, merge
from headrace.experiment.sweep.merged_program import (
    MergedProgram,
    merged_program,
    points_of,
    without_tasks,
)
from headrace.experiment.sweep.substitute import bind
from headrace.formats.experiment_toml import read_experiment
from headrace.model.errors import HeadraceError, UsageError
from headrace.model.events import Event, TaskFinished
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.run_request import RunRequest, opened_cluster, run_request
from headrace.runtime.kept_files import Kept
from headrace.runtime.remaining import Remaining, remaining_program
from headrace.runtime.run_policy import RunPolicy, with_fields

if TYPE_CHECKING:
    from headrace.record import Record, RunRecord

MOST_FAILURES = 10
"""Failed tasks after which an experiment ends."""
MOST_TASKS = 1_000_000
"""Distinct tasks of an experiment that can be executed at once."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """An experiment, what is kept of it, and what is left to run."""

    merged: Merged
    built: MergedProgram
    kept: Mapping[str, Kept]
    """The intact kept value of items, by item."""
    left: Remaining

    @property
    def reused(self) -> tuple[str, ...]:
        return self.left.reused


@dataclass(frozen=True, eq=False)
class Swept:
    """The outcome of an experiment."""

    name: str
    number: int
    """In the record."""
    points: int
    alone: int
    """Tasks if every combination ran by itself."""
    tasks: int
    """Distinct tasks."""
    reused: int
    """Tasks that did not run, because what they make was kept."""
    run: Run | None
    """The run that made the rest, the last of them if there were several; None if there was nothing to run."""
    files: dict[str, Path] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()
    """All of them: after a failure, what does not depend on it goes on in another run."""

    @property
    def failure(self) -> HeadraceError | None:
        """Why some combinations are not complete; None if all are."""
        return next((run.failure for run in self.runs if run.failure is not None), None)

    @property
    def failed(self) -> dict[str, str]:
        """The tasks that failed, and their errors."""
        return {error.task: error.error for run in self.runs for error in run.outcome.errors}


def prepare(
    file: str | Path,
    book: Record,
    *,
    commands: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Prepared:
    """Read an experiment, merge it, and find what is kept: nothing is executed but the program's own file.

    O(combinations * tasks + bytes of inputs and of kept values that are needed).
    """
    merged = merge(bind(read_experiment(file), commands=commands))
    if len(merged.identities) > MOST_TASKS:
        raise UsageError(
            f"{len(merged.identities)} distinct tasks",
            where=str(file),
            hint=f"at most {MOST_TASKS}: split it",
        )
    built = merged_program(merged)
    return with_kept(merged, built, book, say)


def with_kept(merged: Merged, built: MergedProgram, book: Record, say: Callable[[str], None]) -> Prepared:
    """Find what is kept of a merged program; values are verified only if they are needed."""
    from headrace.record.reuse import find_kept, intact_kept

    by_identity: dict[str, list[str]] = {}
    for item, identity in built.items.items():
        by_identity.setdefault(identity, []).append(item)
    there = find_kept(book, by_identity, contents=False)
    damaged = True
    while damaged:  # a damaged value may make others necessary
        items = {item: (float(k[0].size), k[0]) for i, k in there.items() for item in by_identity[i]}
        left = remaining_program(built.program, items)
        used = {built.items[d.name]: d.name for d in left.program.inputs() if d.name in built.items}
        good = intact_kept(book, used, say)
        damaged = bool(used.keys() - good.keys())
        for identity in used.keys() - good.keys():
            del there[identity]
    kept = {item: good[identity] for identity in good for item in by_identity[identity]}
    for name in [d.name for d in left.program.inputs() if d.name in kept]:
        left.program.data[name] = replace(left.program.data[name], value=kept[name])
    return Prepared(merged, built, kept, left)


def sweep(
    file: str | Path,
    on: Any = "local",
    *,
    record: str | Path | None = None,
    allow_commands: bool = False,
    observe: Callable[[Event], None] = lambda event: None,
    planned: Callable[[Plan | None], None] = lambda plan: None,
    say: Callable[[str], None] = lambda text: None,
    progress: Callable[[Prepared], Callable[[Event], None]] | None = None,
    most_failures: int = MOST_FAILURES,
    **more: Any,
) -> Swept:
    """Execute an experiment: what earlier experiments and runs have kept is used, the rest runs as one program.

    An experiment that was stopped, or killed, goes on where it was when it is executed again.

    Parameters
    ----------
    file
        The experiment file.
    on, record, observe, planned, say
        As for `headrace.run`.
    allow_commands
        Execute the commands of a WfFormat program.
    progress
        Called with the experiment before it runs; returns what is called with each event.
    most_failures
        After a failure, combinations that do not depend on the failed task continue, until this many tasks have failed.
    more
        Other parameters of `headrace.run`: `scheduler`, `rules`, `workers`, `speeds`, `platform`, `keep`, ...

    Returns
    -------
    Swept
        Counts, and the run of what was missing. `headrace.results` has the values.
    """
    from headrace.record import Record
    from headrace.record.experiments import fill_values, note_finished

    output = more.pop("output", ".")
    kept = more.pop("policy", None) or RunPolicy(keep="all")
    policy = with_fields(kept, {n: more.pop(n) for n in list(more) if n in _POLICY})
    request = run_request(on=on, output=output, policy=policy, **more)
    with Record.open(record) as book:
        prepared = prepare(file, book, commands=allow_commands, say=say)
        number = _note(prepared, book)
        watch = (lambda event: None) if progress is None else progress(prepared)

        def both(event: Event) -> None:
            watch(event)
            observe(event)

        runs: list[Run] = []
        files: dict[str, Path] = {}
        try:
            if prepared.left.program.tasks:
                with _again_hint(file):
                    listeners = Listeners(both, planned, say)
                    runs = _run_all(prepared, number, request, book, listeners, most_failures)
                files = {item: path for run in runs for item, path in run.files.items()}
            elif any(item.path is not None for item in prepared.left.program.results()):
                files = _only_files(prepared, request, book, say).files
            fill_values(book, number, say)
        finally:
            note_finished(book, number, time.time())
        merged = prepared.merged
        return Swept(
            merged.experiment.name, number, merged.points, merged.tasks_alone, len(prepared.built.facts),
            len(prepared.reused), runs[-1] if runs else None, files, merged.experiment.notes, tuple(runs),
        )  # fmt: skip


_POLICY = {
    "suspect", "stall", "replicate", "retries", "backoff", "timeout", "keep", "disk_wait", "failure_wait", "shared",
}  # fmt: skip


def _note(prepared: Prepared, book: Record) -> int:
    """Record the experiment: its combinations, and which tasks are reused from where."""
    from headrace.record.experiments import NewExperiment, note_experiment

    merged, built = prepared.merged, prepared.built
    reused = set(prepared.reused)
    source = dict.fromkeys(built.facts, "")
    for item, kept in prepared.kept.items():
        task = built.program.producer[item]
        if task in reused:
            source[task] = kept.run
    return note_experiment(
        book,
        NewExperiment(
            merged.experiment.name,
            str(merged.experiment.file.path.absolute()),
            time.time(),
            merged.tasks_alone,
            len(reused),
            [axis.name for axis in merged.experiment.axes],
            points_of(merged),
            ((point, name, built.items[item]) for point, name, item in built.results),
            {
                task: (facts.identity, source[task] or ("-" if task in reused else ""))
                for task, facts in built.facts.items()
            },
        ),
    )


def _run_all(
    prepared: Prepared,
    number: int,
    request: RunRequest,
    book: Record,
    listeners: Listeners,
    most_failures: int,
) -> list[Run]:
    """Run what is left; after a failure, what does not depend on it, on the same workers."""
    runs: list[Run] = []
    failed: set[str] = set()
    with opened_cluster(request) as cluster:
        while prepared.left.program.tasks:
            run = _run_left(prepared, number, replace(request, on=cluster), book, listeners)
            runs.append(run)
            new = {error.task for error in run.outcome.errors} - failed
            failed |= new
            if run.failure is None or not new or len(failed) >= most_failures:
                break
            listeners.say("what does not depend on the failed task goes on")
            rest = without_tasks(prepared.built, failed)
            prepared = with_kept(prepared.merged, rest, book, listeners.say)
    return runs


def _run_left(
    prepared: Prepared, number: int, request: RunRequest, book: Record, listeners: Listeners
) -> Run:
    from headrace.record.experiments import note_run
    from headrace.record.identity import program_digest
    from headrace.record.launch import Launch
    from headrace.record.reuse import note_identities

    left, built = prepared.left.program, prepared.built
    experiment = prepared.merged.experiment
    settings = request.stored() | {"experiment": str(experiment.file.path.absolute())}
    folder = str(experiment.folder.absolute())
    launch = Launch(None, "", program_digest(left.graph), {}, folder, settings).text()

    def begin(graph: Graph, platform: Platform, name: str, plan: Plan | None) -> RunRecord:
        entry = book.begin(experiment.name, graph, platform, name, plan, launch=launch)
        facts = [built.facts[task] for task in left.tasks]
        items = {item: built.items[item] for item, maker in left.producer.items()}
        note_identities(book, entry.id, facts, items, prepared.merged.known.codes)
        note_run(book, number, entry.id)
        return entry

    done = carry_out(left, request, book, begin, listeners, experiment.folder)
    return replace(done, reused=prepared.reused)


def _only_files(prepared: Prepared, request: RunRequest, book: Record, say: Callable[[str], None]) -> Run:
    """Everything is kept: write the results that have files, without any worker."""
    from headrace.runtime.execute import Outcome

    program = prepared.left.program
    platform = Platform.local(1)
    with book.begin(prepared.merged.experiment.name, program.graph, platform, "none", None) as entry:
        files = result_files(program, request, entry, book, say)
        for item in program.results():
            if item.path is not None:
                kept = prepared.kept[item.name]
                files.offer_value(item.name, book.kept_folder(kept.run).load(replace(kept, run="")))
        files.finish()
        outcome = Outcome({}, 0.0, ())
        done = Run(entry.id, "none", None, outcome, program.graph, platform, files.files, files.failures)
        finish_run(done, entry, book, request.policy)
        return done


@contextmanager
def _again_hint(file: str | Path) -> Iterator[None]:
    """An error that ends an experiment says how to go on: by executing it again."""
    try:
        yield
    except HeadraceError as error:
        error.hint = re.sub(r"headrace resume \S+", f"headrace sweep {file}", error.hint)
        raise


class PointProgress:
    """How many combinations are complete, as tasks finish: O(1) for each task and combination that needs it."""

    def __init__(self, prepared: Prepared) -> None:
        self.tasks = len(prepared.left.program.tasks)
        self.points = prepared.merged.points
        self._missing = [0] * self.points
        self._points: dict[str, list[int]] = {}
        self._finished: set[str] = set()
        for variant in prepared.merged.variants:
            numbers = variant.numbers.tolist()
            for of in variant.tasks.values():
                names = [prepared.built.of_identity[identity] for identity in of.identity]
                for point, j in zip(numbers, of.of_point.tolist(), strict=True):
                    if names[j] in prepared.left.program.tasks:
                        self._points.setdefault(names[j], []).append(point)
                        self._missing[point] += 1
        self.complete = self._missing.count(0)

    def __call__(self, event: Event) -> None:
        if isinstance(event, TaskFinished) and event.task not in self._finished:
            self._finished.add(event.task)
            for point in self._points.get(event.task, ()):
                self._missing[point] -= 1
                self.complete += self._missing[point] == 0

    @property
    def finished(self) -> int:
        return len(self._finished)


def program_of(file: str | Path, *, commands: bool = False) -> Program:
    """The merged program of an experiment, to plan or simulate it like any other."""
    return merged_program(merge(bind(read_experiment(file), commands=commands))).program
