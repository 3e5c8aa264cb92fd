"""Execute a program on real workers: estimates, a plan, the record of the run, and result files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from headrace.core.replan import Replan
from headrace.core.replan_policy import ReplanPolicy, WhenImpossible
from headrace.core.scheduler import Planner, Problem, Scheduler
from headrace.given import as_program, require_arguments, require_bodies
from headrace.model.arguments import checked_path
from headrace.model.check import require_valid
from headrace.model.errors import HeadraceError, TaskFailed, UsageError
from headrace.model.events import Event, TaskFinished
from headrace.model.graph import Graph
from headrace.model.needs import fitting, require_fitting
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.model.units import plural, show_time
from headrace.online.adapter import accepted_policy, is_scheduler, make_scheduler
from headrace.planners.bounds import lower_bound
from headrace.planners.registry import DEFAULT
from headrace.planners.timed import plan_with_bound
from headrace.predict.functions import function_digests
from headrace.predict.learning import Learned
from headrace.predict.learning import learn as learn_figures
from headrace.predict.overheads import overheads
from headrace.predict.parameters import task_parameters
from headrace.report.deviations import Deviations, deviations
from headrace.run_platform import Sources, given_platform, platform_of_run, with_overheads
from headrace.run_request import ENGINE, PAUSE, RunRequest, opened_cluster, run_request
from headrace.run_results import Results, write_run
from headrace.runtime.input_files import require_inputs
from headrace.runtime.run_policy import RunPolicy, with_fields

if TYPE_CHECKING:
    from headrace.record import Record, RunRecord
    from headrace.record.launch import ProgramSource
    from headrace.record.result_files import ResultFiles
    from headrace.report.picture import Picture
    from headrace.rules.given import Rules
    from headrace.rules.tree import RuleSet
    from headrace.runtime.cluster import Cluster
    from headrace.runtime.execute import Outcome


@dataclass(frozen=True, eq=False)
class Run:
    """The outcome of a real run."""

    id: str
    """The run's id in the record."""
    scheduler: str
    """The scheduler that decided; "dask" when the engine did."""
    plan: Plan | None
    """The initial plan; None for schedulers that do not plan ahead."""
    outcome: Outcome
    graph: Graph
    """The program with run times and sizes as estimated before the run."""
    platform: Platform
    files: dict[str, Path]
    """The file of each result."""
    unwritten: dict[str, HeadraceError] = field(default_factory=dict)
    """Results with a path that could not be written, and why; the others are there."""
    reused: tuple[str, ...] = ()
    """Tasks that did not run because what they make was kept by earlier sessions of the run."""
    sources: Sources | None = None
    """Where the figures come from with which the run was planned; None if nothing was left to run."""

    @cached_property
    def bound(self) -> float | None:
        """Lower bound on the makespan, from measured run times; None if a task was not measured."""
        rate = self.platform.rates(self.graph)
        number = {name: t for t, name in enumerate(self.graph.task_names)}
        host_number = {host.name: i for i, host in enumerate(self.platform.hosts)}
        work = np.full(self.graph.n_tasks, np.nan)
        for event in self.outcome.events:
            if isinstance(event, TaskFinished) and event.host in host_number:
                t = number[event.task]
                work[t] = (event.time - event.start) * rate[
                    self.graph.speed_class[t], host_number[event.host]
                ]
        if np.isnan(work).any():
            return None
        return lower_bound(Problem(self.graph.with_work(np.maximum(work, 0.0)), self.platform))

    @cached_property
    def deviations(self) -> Deviations | None:
        """The makespan split by cause, beside the plan's; None if no task has finished."""
        return deviations(self.plan, self.outcome.events, self.graph, self.platform)

    @property
    def makespan(self) -> float:
        return self.outcome.makespan

    def report(self) -> dict[str, Any]:
        """Where the figures came from with which it was planned, and the makespan by cause; for JSON."""
        split = self.deviations
        return {
            "sources": None if self.sources is None else self.sources.facts(),
            "deviations": None if split is None else split.facts(),
        }

    @cached_property
    def results(self) -> dict[str, Any]:
        """The values of results, by name; after a failure, those that are there. Others raise a KeyError."""
        return Results(self.outcome.results, self.failure)

    def gantt(self, path: str | Path | None = None) -> Picture:
        """The run as a Gantt chart, with the plan behind it; written to an SVG file if a path is given."""
        from headrace.report.picture import draw_run

        events = self.outcome.events
        return draw_run(self.plan, events, self.platform, path, graph=self.graph, bound=self.bound)

    def to_pandas(self, what: Literal["tasks", "transfers"] = "tasks") -> Any:
        """The executions or transfers as a `pandas.DataFrame`; times in seconds, sizes in bytes."""
        from headrace.report.frames import events_frame

        return events_frame(self.outcome.events, self.graph, what)

    def write(self, path: str | Path) -> None:
        """Write the run: .csv and .parquet list the executions, as `to_pandas` does, .svg is the Gantt chart."""
        write_run(self, checked_path(path))

    def __repr__(self) -> str:
        state = "complete" if self.failure is None else "failed"
        return (
            f"<Run {self.id} of {self.graph.name!r} on {self.platform.name!r} by {self.scheduler}: {state}, "
            f"{plural(self.graph.n_tasks, 'task')}, makespan {show_time(self.makespan)}>"
        )

    def _repr_html_(self) -> str:
        from headrace.report.notebook import run_html

        return run_html(self)

    @property
    def failure(self) -> TaskFailed | None:
        """Why the run is not complete, as an exception that can be raised; None if it is."""
        if self.outcome.failure is not None or not self.unwritten:
            return self.outcome.failure
        first = next(iter(self.unwritten.values()))
        more = f", and {len(self.unwritten) - 1} more" if len(self.unwritten) > 1 else ""
        return TaskFailed(first.problem + more, where=first.where, hint=first.hint)


def run(
    program: Program | str | Path,
    on: str | Cluster | Any = "local",
    scheduler: str | Planner | Scheduler = DEFAULT,
    *,
    rules: Rules | None = None,
    when_impossible: WhenImpossible = "stop",
    workers: int | None = None,
    speeds: Sequence[float] | None = None,
    stretch: float = 1.0,
    platform: Platform | str | Path | None = None,
    tls: dict[str, Any] | None = None,
    record: str | Path | None = None,
    output: str | Path = ".",
    learn: bool = True,
    observe: Callable[[Event], None] = lambda event: None,
    planned: Callable[[Plan | None], None] = lambda plan: None,
    say: Callable[[str], None] = lambda text: None,
    source: ProgramSource | None = None,
    allow_commands: bool = False,
    policy: RunPolicy | None = None,
    **more: Any,
) -> Run:
    """Run a program on local workers, on a cluster at `tls://host:port`, or on an open `Cluster`.

    All events are written to the record. Results with a path are written relative to `output`, others to the
    record's folder. A planner plans before the run and replans when hosts join or leave.

    Parameters
    ----------
    program
        A program, or the name of its file, such as `file.py:name`, which is executed.
    on
        `local`, `tls://host:port`, `tcp://127.0.0.1:port`, `ssh://hosts.toml`, or an open `Cluster` or Dask client,
        which stays open.
    scheduler
        A name listed by `headrace schedulers`, `file.py:Class`, or an object; `dask` leaves placement to the engine.
    rules
        What the run must and should be, as for `plan`. A planner's first plan keeps every requirement; later plans, and
        schedulers that decide while the program runs, obey the requirements on hosts, order and releases. Such
        schedulers refuse other requirements.
    when_impossible
        When a loss makes it impossible to keep a rule: `stop` the run, or `drop` the rule and continue. For a scheduler
        given by name, and for a planner.
    workers, speeds, stretch
        For local runs: number of workers (default: one per core), emulated relative speeds, and a factor by which
        tasks are slowed down.
    platform
        A platform, or its file, that describes the workers and their links: its hosts are matched with workers by
        name or address. By default links are measured at the first run and once a day, and refined by the
        transfers of runs.
    tls
        Certificate files for `tls://` addresses: `ca`, `cert` and `key`.
    record
        Folder of the record; by default $HEADRACE_HOME, or .headrace in the current folder.
    learn
        Estimate run times, sizes and links from earlier runs.
    observe
        Called with every event.
    planned
        Called with the initial plan before the run starts.
    say
        Called with notes for the user, such as that the disk is full.
    source
        Where the program comes from: stored, so that `headrace resume` finds it again.
    allow_commands
        Execute the commands of a WfFormat file. Use it only on files that you trust.
    policy
        What to do about failures, and what to keep; its fields can also be given as keywords, such as `keep="all"`.

    Returns
    -------
    Run
        Results, measured times and files. A failing task does not raise: see `Run.failure`.

    >>> import tempfile
    >>> import headrace as hr
    >>> program = hr.Program("two")
    >>> first = program.task(lambda: 20, outputs=["x"])
    >>> second = program.task(lambda x: x + 1, inputs=[first], outputs=["y"])
    >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +SKIP
    ...     hr.run(program, workers=2, record=folder, output=folder).results
    {'y': 21}
    """
    from headrace.formats.function_reference import with_functions
    from headrace.record import Record
    from headrace.record.launch import Launch, ProgramSource
    from headrace.record.reuse import note_program

    if not isinstance(program, Program):
        spec = program if isinstance(program, str | Path) else None
        source = source or (None if spec is None else ProgramSource(str(spec), commands=allow_commands))
        program = loaded_program(program, allow_commands)
        require_bodies(
            program, spec, allow="add allow_commands=True", emulate="use headrace.runtime.emulate.emulate"
        )
    program = with_functions(program)
    request = run_request(
        on=on,
        scheduler=scheduler,
        rules=rules,
        when_impossible=when_impossible,
        workers=workers,
        speeds=speeds,
        stretch=stretch,
        platform=platform,
        tls=tls,
        learn=learn,
        output=output,
        policy=with_fields(policy, more),
    )
    with Record.open(record) as book:
        launch = Launch.of(program, source, request.stored()).text()

        def begin(graph: Graph, platform: Platform, name: str, plan: Plan | None) -> RunRecord:
            entry = book.begin(program.name, graph, platform, name, plan, launch=launch)
            note_program(book, entry.id, program, Path())
            return entry

        return carry_out(program, request, book, begin, Listeners(observe, planned, say))


def loaded_program(given: Any, commands: bool = False) -> Program:
    """A program that can be executed; a text or path is its file."""
    found = as_program(given, commands=commands)
    if isinstance(found, Graph):
        raise UsageError(
            "a Graph has only figures, and nothing to execute", hint="give the Program that it was made from"
        )
    return found


@dataclass(frozen=True)
class Listeners:
    """What the caller wants to know while a program runs."""

    observe: Callable[[Event], None] = lambda event: None
    planned: Callable[[Plan | None], None] = lambda plan: None
    say: Callable[[str], None] = lambda text: None


Begin: TypeAlias = Callable[[Graph, Platform, str, Plan | None], "RunRecord"]


def carry_out(
    program: Program,
    request: RunRequest,
    book: Record,
    begin: Begin,
    listeners: Listeners,
    base: str | Path = ".",
) -> Run:
    """Plan and execute a program, and record it in what `begin` returns."""
    from headrace.formats.platform_toml import platform_text
    from headrace.record.committer import Committer
    from headrace.record.executions import note_figures
    from headrace.record.probes import save_overheads
    from headrace.record.run_plans import note_hosts, note_plan
    from headrace.record.run_reports import note_report
    from headrace.runtime.host_room import with_room

    require_arguments(program)
    require_inputs(program, base)
    known = book if request.learn else None
    with opened_cluster(request) as cluster:
        given = platform_of_run(cluster, request.platform, known, listeners.say)
        given = replace(given, platform=with_room(cluster.client, given.platform, program))
        require_fitting(program.graph, given.platform)
        learned = _estimates(program, given.platform, known)
        graph, platform = learned.graph, learned.platform
        planning = with_overheads(given, learned, known)
        plan, policy, name, obeyed = _policy(
            request.scheduler,
            graph,
            planning.platform,
            request.rules,
            request.when_impossible,
        )
        listeners.planned(plan)
        with (
            ExitStack() as stack,
            begin(graph, planning.platform, name, plan) as entry,
            Committer(
                entry,
                result_files(program, request, entry, book, listeners.say),
                cluster.client,
                listeners.say,
            ) as committer,
        ):
            stack.enter_context(_resume_hint(entry.id))
            note_figures(book, entry.id, program.graph, function_digests(program), task_parameters(program))
            if entry.session.number == 1:  # a resumed run is judged by its first plan
                note_plan(
                    book,
                    entry.id,
                    graph,
                    planning.platform,
                    plan,
                    "" if request.rules is None else request.rules.text,
                )

            def both(event: Event) -> None:
                entry.observe(event)
                listeners.observe(event)

            outcome = cluster.execute(
                program,
                policy,
                both,
                graph=obeyed,
                platform=planning.platform,
                base=base,
                policy=request.policy,
                hooks=committer.hooks(request.policy.keep),
                logs=book.logs_folder(entry.id),
            )
            files = committer.complete(outcome.results)
            outcome = replace(outcome, results=committer.located(outcome.results))
            done = Run(
                entry.id,
                name,
                plan,
                outcome,
                graph,
                platform,
                files.files,
                files.failures,
                sources=planning.sources,
            )
            finish_run(done, entry, book, request.policy)
            save_overheads(book, entry.id, overheads(graph, platform, outcome.events))
            note_hosts(book, entry.id, outcome.events)
            note_report(book, entry.id, done.report() | {"platform": platform_text(platform)})
            return done


@contextmanager
def _resume_hint(run: str) -> Iterator[None]:
    """An error that ends a run says how to go on from what is committed."""
    try:
        yield
    except HeadraceError as error:
        command = f"headrace resume {run}"
        if command not in error.hint:
            error.hint = f"{error.hint}; to continue: {command}" if error.hint else command
        raise


def result_files(
    program: Program, request: RunRequest, entry: RunRecord, book: Record, say: Callable[[str], None]
) -> ResultFiles:
    """The files of a run's results; intact files of an earlier session are not written again."""
    from headrace.record.result_files import ResultFiles, intact_files

    written = intact_files(book.results(entry.id)) if entry.session.number > 1 else {}
    return ResultFiles(
        program, entry, request.output, say=say, patience=request.policy.disk_wait, written=written
    )


def finish_run(done: Run, entry: RunRecord, book: Record, policy: RunPolicy) -> None:
    """Close the record of a run, and remove kept files that are no longer needed."""
    failed = done.failure is not None
    bound = None if done.bound is None else entry.session.offset + done.bound
    entry.finish("failed" if failed else "done", done.makespan, bound, patience=policy.disk_wait)
    if not failed and policy.keep != "all":
        results = {
            name for name, wanted in zip(done.graph.item_names, done.graph.result, strict=True) if wanted
        }
        book.drop_intermediates(entry.id, results)
    entry.kept.drop_others(book.kept(entry.id))


def _estimates(program: Program, platform: Platform, book: Record | None) -> Learned:
    """Run times and sizes as measured in earlier runs, where available."""
    graph = program.graph
    if book is None:
        return Learned(graph, platform)
    sizes = book.item_sizes(graph)
    if sizes:
        estimated = np.where(graph.unknown_size, np.nan, graph.size).tolist()
        graph = graph.with_size([sizes.get(n, s) for n, s in zip(graph.item_names, estimated, strict=True)])
    from headrace.record.executions import executions

    parameters = task_parameters(program)
    seen = executions(book, program.graph, function_digests(program), parameters)
    return learn_figures(graph, platform, seen, {task: of.numbers for task, of in parameters.items()})


@dataclass(frozen=True, eq=False)
class Forecast:
    """The plan that a run would start with, and what it is based on."""

    scheduler: str
    plan: Plan | None
    platform: Platform
    learned: Learned


def first_plan(program: Program, request: RunRequest, book: Record) -> Forecast:
    """The plan that a run would start with; no local worker is started."""
    local = request.on == "local"
    with nullcontext() if local else opened_cluster(request) as cluster:
        known = book if request.learn else None
        if cluster is not None:
            here = platform_of_run(cluster, request.platform, known)
        elif request.platform is None:
            here = given_platform(Platform.local(request.workers, speeds=request.speeds))
        else:
            described = request.platform
            here = given_platform(
                Platform.read(described) if isinstance(described, str | Path) else described
            )
        learned = _estimates(program, here.platform, known)
        planning = with_overheads(here, learned, known).platform
        plan, _, name, _ = _policy(
            request.scheduler, learned.graph, planning, request.rules, request.when_impossible
        )
        return Forecast(name, plan, planning, learned)


def _policy(
    scheduler: str | Planner | Scheduler,
    graph: Graph,
    platform: Platform,
    rules: RuleSet | None,
    when_impossible: WhenImpossible,
) -> tuple[Plan | None, Scheduler | None, str, Graph]:
    """The initial plan (None unless the scheduler is a planner), the scheduler, its name, and the graph to run."""
    if scheduler == ENGINE:
        limited = bool(graph.needs.names) and not fitting(graph, platform).all()
        if rules is not None or limited:
            what = "rules" if rules is not None else "where tasks fit"
            raise UsageError(f"the engine does not know {what}", hint="use another scheduler, such as auto")
        return None, None, ENGINE, graph
    policy = ReplanPolicy(pause=PAUSE, when_impossible=when_impossible)
    if isinstance(scheduler, str):
        policy = accepted_policy(scheduler, policy)
    elif is_scheduler(scheduler):
        policy = ReplanPolicy()
    made = make_scheduler(scheduler, policy)
    problem = Problem(graph, platform, rules=rules)
    obeyed = graph
    if rules is not None:
        from headrace.simulator.events.ruled import under_rules

        made, obeyed = under_rules(made, problem, plan_first=False)
    if not isinstance(made, Replan):
        return None, made, made.name, obeyed
    plan = plan_with_bound(made.planner, problem)
    require_valid(graph, platform, plan)
    made.first = replace(plan, graph=obeyed)
    return plan, made, made.name, obeyed
