"""Resume a run from what it has kept, and say beforehand what a run would do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.execution import (
    Listeners,
    Run,
    carry_out,
    finish_run,
    first_plan,
    loaded_program,
    result_files,
)
from headrace.given import require_arguments
from headrace.model.errors import BadFile, ProgramChanged, UsageError
from headrace.model.events import Event
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Command, Program
from headrace.run_request import RunRequest, run_request
from headrace.runtime.input_files import require_inputs
from headrace.runtime.remaining import Remaining, remaining_program
from headrace.runtime.run_policy import RunPolicy

if TYPE_CHECKING:
    from headrace.record import Record, RunRecord
    from headrace.record.launch import Launch


@dataclass(frozen=True)
class Preview:
    """What a run would do."""

    scheduler: str
    plan: Plan | None
    """None for schedulers that do not plan ahead, and if nothing is left to run."""
    platform: Platform
    tasks: tuple[str, ...]
    """Tasks that would run."""
    reused: tuple[str, ...] = ()
    """Tasks that would not, because what they make is kept."""
    commands: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The tasks that would execute commands, with their arguments."""


def resume(
    run: str = "last",
    program: Program | str | Path | None = None,
    *,
    record: str | Path | None = None,
    anyway: bool = False,
    observe: Callable[[Event], None] = lambda event: None,
    planned: Callable[[Plan | None], None] = lambda plan: None,
    say: Callable[[str], None] = lambda text: None,
    left: Callable[[int], None] = lambda tasks: None,
    **changes: Any,
) -> Run:
    """Continue a run that was killed, cancelled or failed, from what it has committed.

    Committed values are verified by their checksums; what is damaged or missing is made again, nothing else that was
    committed is. Workers may be others than before.

    Parameters
    ----------
    run
        Its id, or `last`.
    program
        The program, or the name of its file, if it was built by a script; otherwise it is read from its file again.
    record
        As for `run`.
    anyway
        Use what is committed although the code that made it, or an input, has changed since. A change of the
        program's file that concerns only tasks that are still to run is accepted without it.
    observe, planned, say
        As for `run`.
    left
        Called with the number of tasks that are left to run.
    changes
        Options of `run` that are to be different: `on`, `scheduler`, `workers`, `speeds`, `output`, `keep`, ...

    Returns
    -------
    Run
        As `run` returns it; `reused` has the tasks that did not run again.

    Raises
    ------
    ProgramChanged
        If the program is not the one that was started, as far as what is committed depends on it.
    UsageError
        If there is no such run, or it is running.

    >>> import tempfile
    >>> import headrace as hr
    >>> program = hr.Program("one")
    >>> answer = program.task(lambda: 42, outputs=["answer"])
    >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +SKIP
    ...     done = hr.run(program, workers=1, record=folder, output=folder)
    ...     hr.resume(done.id, program, record=folder).results
    {'answer': 42}
    """
    from headrace.record import Record

    with Record.open(record) as book:
        found = _Resumable.find(book, run, program, anyway, say, changes)
        left(len(found.left.program.tasks))
        if not found.left.program.tasks:
            done = _only_results(found, found.request, book, say)
        else:
            done = carry_out(
                found.left.program,
                found.request,
                book,
                found.begin,
                Listeners(observe, planned, say),
                found.launch.folder,
            )
        return replace(done, reused=found.left.reused)


def preview_resume(
    run: str = "last",
    program: Program | str | Path | None = None,
    *,
    record: str | Path | None = None,
    anyway: bool = False,
    say: Callable[[str], None] = lambda text: None,
    **changes: Any,
) -> Preview:
    """What `resume` would do: nothing is executed or changed."""
    from headrace.record import Record

    with Record.open(record) as book:
        found = _Resumable.find(book, run, program, anyway, say, changes)
        shown = _preview(found.left.program, found.request, book)
        return replace(shown, reused=found.left.reused)


def preview_run(program: Program, **wanted: Any) -> Preview:
    """What `run` would do with these parameters."""
    from headrace.record import Record

    record = wanted.pop("record", None)
    with Record.open(record) as book:
        require_arguments(program)
        require_inputs(program)
        return _preview(program, run_request(**wanted), book)


def _preview(program: Program, request: RunRequest, book: Record) -> Preview:
    """What a run would do: the plan is made, and nothing executed. No local workers are started."""
    if not program.tasks:
        return Preview(str(request.scheduler), None, Platform.local(1), ())
    found = first_plan(program, request, book)
    commands = tuple((t.name, t.body.argv) for t in program.tasks.values() if isinstance(t.body, Command))
    return Preview(found.scheduler, found.plan, found.platform, tuple(program.tasks), commands=commands)


@dataclass(frozen=True)
class _Resumable:
    """A run, how it was started, and what is left of it."""

    run: str
    book: Record
    launch: Launch
    request: RunRequest
    left: Remaining
    damaged: frozenset[str]
    """Items that were kept, and are not what was committed any more."""

    @classmethod
    def find(
        cls,
        book: Record,
        run: str,
        program: Program | str | Path | None,
        anyway: bool,
        say: Callable[[str], None],
        changes: dict[str, Any],
    ) -> _Resumable:
        from headrace.record.launch import Launch

        row = book.run(run)
        if row.status == "running":
            raise UsageError(f"run {row.id} is running", hint=f"headrace cancel {row.id}")
        launch = Launch.parse(book.launch(row.id))
        program = launch.load() if program is None else loaded_program(program)
        request = _request(launch, changes)
        if not launch.has_structure(program):
            raise ProgramChanged(
                "the tasks and data of the program have changed since the run was started",
                where=f"run {row.id}",
                hint="start a new run",
            )
        folder = book.kept_folder(row.id)
        intact = {kept.item: kept for kept in folder.intact(book.kept(row.id), say)}
        damaged = {kept.item for kept in book.kept(row.id)} - intact.keys()
        done = {task.task for task in book.tasks(row.id) if task.status == "done"}
        left = remaining_program(
            program,
            {item: (float(kept.size), kept) for item, kept in intact.items()},
            done,
            damaged if request.policy.keep == "all" else (),
        )
        _require_same(launch, program, row.id, left.reused, anyway)
        return cls(row.id, book, launch, request, left, frozenset(damaged))

    def begin(self, graph: Graph, platform: Platform, name: str, plan: Plan | None) -> RunRecord:
        entry = self.book.resume(self.run, graph, plan)
        if self.damaged:
            self.book.forget_kept(self.run, self.damaged)
        return entry


def _require_same(launch: Launch, program: Program, run: str, used: tuple[str, ...], anyway: bool) -> None:
    """Refuse a program if what is committed was made by other code, or from other inputs."""
    changed = launch.changes(program, used)
    if changed and not anyway:
        raise ProgramChanged(
            f"{', '.join(changed[:3])} changed since the run was started, and what it made is committed",
            where=f"run {run}",
            hint="restore it, start a new run, or use what is committed all the same with --anyway",
        )


def _request(launch: Launch, changes: dict[str, Any]) -> RunRequest:
    """The stored options with some of them changed; those of local workers hold for local workers only."""
    known = {declared.name for declared in fields(RunRequest)} - {"policy"}
    of_policy = {declared.name for declared in fields(RunPolicy)}
    unknown = [name for name in changes if name not in known | of_policy]
    if unknown:
        raise UsageError(
            f"there is no parameter {unknown[0]!r}", hint=f"use one of {', '.join(sorted(known | of_policy))}"
        )
    stored = dict(launch.settings)
    if "on" in changes and changes["on"] != stored.get("on"):
        stored |= {"workers": None, "speeds": None, "stretch": 1.0, "platform": None, "tls": None}
    if changes.get("workers") is not None and "speeds" not in changes:
        stored["speeds"], stored["stretch"] = None, 1.0
    if changes.get("speeds") and "stretch" not in changes:
        emulated = launch.source is not None and launch.source.emulation is not None
        stored |= {"workers": None, "stretch": 1.0 if emulated else max(changes["speeds"])}
    try:
        policy = {name: value for name, value in stored.pop("policy").items() if name in of_policy}
        policy |= {name: value for name, value in changes.items() if name in of_policy}
        stored |= {name: value for name, value in changes.items() if name in known}
        rules = stored.pop("rules")
        return RunRequest(rules=_parsed(rules), policy=RunPolicy(**policy), **stored)
    except (TypeError, KeyError, AttributeError) as error:
        raise BadFile(f"the record does not say how the run was started: {error}") from None


def _parsed(rules: Any) -> Any:
    if not isinstance(rules, str):
        return rules
    from headrace.rules.parser import parse_rules

    return parse_rules(rules)


def _only_results(found: _Resumable, request: RunRequest, book: Record, say: Callable[[str], None]) -> Run:
    """Everything is committed: write the results that have no intact file, without any worker."""
    from headrace.runtime.execute import Outcome
    from headrace.runtime.graph import build_engine_graph
    from headrace.runtime.kept_files import Keeping

    program, row = found.left.program, book.run(found.run)
    folder = book.kept_folder(row.id)
    keeping = Keeping(row.id, str(folder.folder), folder.key, request.policy.keep)
    values = build_engine_graph(program, "0", found.launch.folder, keeping=keeping).given
    platform = Platform.local(1)
    with found.begin(program.graph, platform, row.scheduler, None) as entry:
        files = result_files(program, request, entry, book, say)
        for item, value in values.items():
            files.offer_value(item, value)
        files.finish()
        outcome = Outcome(values, 0.0, ())
        done = Run(row.id, row.scheduler, None, outcome, program.graph, platform, files.files, files.failures)
        finish_run(done, entry, book, request.policy)
        return done
