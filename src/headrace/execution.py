"""Execute a program on real workers: estimates, a plan, the record of the run, and result files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from headrace.core.replan import Replan
from headrace.core.replan_policy import ReplanPolicy, WhenImpossible
from headrace.core.scheduler import Planner, Problem, Scheduler
from headrace.model.check import require_valid
from headrace.model.errors import HeadraceError, TaskFailed, UsageError
from headrace.model.events import Event, TaskFinished
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.online.adapter import accepted_policy, is_scheduler, make_scheduler
from headrace.planners.bounds import lower_bound
from headrace.planners.registry import DEFAULT
from headrace.planners.timed import plan_with_bound
from headrace.predict.history import predict

if TYPE_CHECKING:
    from headrace.record import Record, RunRecord
    from headrace.rules.given import Rules
    from headrace.rules.tree import RuleSet
    from headrace.runtime.cluster import Cluster
    from headrace.runtime.execute import Outcome

ENGINE = "dask"
"""The scheduler name that leaves placement to the engine."""

_PAUSE = 5.0
"""Minimum seconds between replans triggered by deviations in a real run: distributing a plan also takes time."""


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

    @property
    def makespan(self) -> float:
        return self.outcome.makespan

    @property
    def results(self) -> dict[str, Any]:
        return self.outcome.results

    @property
    def failure(self) -> TaskFailed | None:
        """Why the run ended early, as an exception that can be raised; None if it completed."""
        return self.outcome.failure


def run(
    program: Program,
    on: str | Cluster = "local",
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
) -> Run:
    """Run a program on local workers, on a cluster at `tls://host:port`, or on an open `Cluster`.

    All events are written to the record. Results with a path are written relative to `output`, others to the
    record's folder. A planner plans before the run and replans when hosts join or leave.

    Parameters
    ----------
    on
        `local`, `tls://host:port`, `tcp://127.0.0.1:port`, or an open `Cluster`, which stays open.
    scheduler
        A name listed by `headrace schedulers`, `file.py:Class`, or an object; `dask` leaves placement to the engine.
    rules
        What the run must and should be, as for `plan`. A planner's first plan keeps every requirement; later plans, and
        schedulers that decide while the program runs, obey the requirements on hosts, order and releases.
    when_impossible
        When a loss makes it impossible to keep a rule: `stop` the run, or `drop` the rule and go on. For a scheduler
        given by name, and for a planner.
    workers, speeds, stretch
        For local runs: number of workers (default: one per core), emulated relative speeds, and a factor by which
        tasks are slowed down.
    platform
        A platform, or its file, that describes the workers and their links: its hosts are matched with workers by
        name or address. Its links, prices and watts then hold for the run.
    tls
        Certificate files for `tls://` addresses: `ca`, `cert` and `key`.
    record
        Folder of the record; by default $HEADRACE_HOME, or .headrace in the current folder.
    learn
        Estimate run times and sizes from earlier runs.
    observe
        Called with every event.
    planned
        Called with the initial plan before the run starts.

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
    from headrace.record import Record
    from headrace.runtime.results import write_results

    asked = _rules(rules)
    given = Platform.read(platform) if isinstance(platform, str | Path) else platform
    with (
        Record.open(None if record is None else Path(record)) as book,
        _cluster(on, workers, speeds, stretch, tls) as cluster,
    ):
        described = cluster.platform if given is None else _described(cluster, given)
        graph, known = _estimates(program, described, book if learn else None)
        plan, policy, name, obeyed = _policy(scheduler, graph, known, asked, when_impossible)
        planned(plan)
        with book.begin(program.name, graph, known, name, plan) as entry:

            def both(event: Event) -> None:
                entry.observe(event)
                observe(event)

            outcome = cluster.execute(program, policy, both, graph=obeyed, platform=known)
            files = write_results(program, outcome.results, output)
            files |= _keep(program, outcome.results, files, entry.results_folder)
            _note_locations(program, outcome, files, entry)
            done = Run(entry.id, name, plan, outcome, graph, known, files)
            entry.finish("failed" if outcome.failure else "done", outcome.makespan, done.bound)
            return done


@contextmanager
def _cluster(
    on: str | Cluster,
    workers: int | None,
    speeds: Sequence[float] | None,
    stretch: float,
    tls: dict[str, Any] | None,
) -> Iterator[Cluster]:
    """Workers for one run; a cluster passed in stays open."""
    from headrace.runtime.cluster import connect, open_local

    if not isinstance(on, str):
        yield on
    elif on == "local":
        with open_local(workers, speeds=speeds, stretch=stretch) as opened:
            yield opened
    elif "://" in on:
        if workers is not None or speeds is not None:
            raise UsageError("workers and speeds apply only to local runs", where=on, hint="leave them out")
        with connect(on, **(tls or {})) as joined:
            yield joined
    else:
        raise UsageError(
            f"cannot run on {on!r}", hint="use `local`, tls://host:port, or tcp://127.0.0.1:port"
        )


def _described(cluster: Cluster, platform: Platform) -> Platform:
    """A described platform, with its hosts named as the workers they stand for."""
    from headrace.runtime.matching import match_hosts, workers_of

    return match_hosts(platform, workers_of(cluster.client))


def _estimates(program: Program, platform: Platform, book: Record | None) -> tuple[Graph, Platform]:
    """Run times and sizes as measured in earlier runs, where available."""
    graph = program.graph
    if book is None:
        return graph, platform
    sizes = book.item_sizes(graph)
    if sizes:
        estimated = np.where(graph.unknown_size, np.nan, graph.size).tolist()
        graph = graph.with_size([sizes.get(n, s) for n, s in zip(graph.item_names, estimated, strict=True)])
    return predict(graph, platform, book.measurements(graph.kinds))


def _rules(given: Rules | None) -> RuleSet | None:
    if given is None:
        return None
    from headrace.rules.given import as_rules

    found = as_rules(given)
    return found if len(found) else None


def _policy(
    scheduler: str | Planner | Scheduler,
    graph: Graph,
    platform: Platform,
    rules: RuleSet | None,
    when_impossible: WhenImpossible,
) -> tuple[Plan | None, Scheduler | None, str, Graph]:
    """The initial plan (None unless the scheduler is a planner), the scheduler, its name, and the graph to run."""
    if scheduler == ENGINE:
        if rules is not None:
            raise UsageError("the engine does not know rules", hint="use another scheduler, such as auto")
        return None, None, ENGINE, graph
    policy = ReplanPolicy(pause=_PAUSE, when_impossible=when_impossible)
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


def _keep(
    program: Program, results: dict[str, Any], written: dict[str, Path], folder: Path
) -> dict[str, Path]:
    """Write results without a path to the run's folder, if they can be encoded as files."""
    from headrace.formats.files import write_file
    from headrace.runtime.results import encode

    kept = {}
    for item in program.results():
        if item.name in written or item.name not in results:
            continue
        try:
            content, suffix = encode(results[item.name], item.name)
        except HeadraceError:
            continue
        stem = quote(item.name, safe="")[:120]
        kept[item.name] = folder / (stem if Path(stem).suffix else stem + suffix)
        write_file(kept[item.name], content, compress=False, make_folder=True)
    return kept


def _note_locations(program: Program, outcome: Outcome, files: dict[str, Path], entry: RunRecord) -> None:
    for name, path in files.items():
        if name in program.producer:
            entry.stored(program.producer[name], str(path.absolute()))
