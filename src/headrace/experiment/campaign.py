"""Campaigns: simulate every combination of applications, grids, schedulers and settings, and cache results."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version
from itertools import product
from multiprocessing.synchronize import Event
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from headrace.arrays.compile_notice import Notice, first_use, set_notice
from headrace.experiment.campaign_limits import require_graph_size, require_grid_size, require_sweep_size
from headrace.experiment.campaign_parts import (
    RULES,
    entry_digest,
    grid_spec,
    make_grid,
    make_program,
    make_setting,
    sweep_spec,
)
from headrace.experiment.kept import file_digest, open_kept
from headrace.formats.campaign_toml import CampaignFile, Entry
from headrace.model.behaviour import GridScript
from headrace.model.errors import HeadraceError, NoPlan, UsageError
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.online.adapter import make_scheduler, policy_fields
from headrace.planners.registry import options_taken
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.faults import parse_faults
from headrace.simulator.events.simulate import simulate_program


class Outcome(NamedTuple):
    """The cached outcome of a simulated run; `error` says why it has no makespan."""

    makespan: float = math.nan
    bound: float = 0.0
    bytes_moved: float = 0.0
    plans: int = 0
    redone: int = 0
    log_events: int = 0
    deciding: float = 0.0
    """CPU seconds spent in the scheduler on this machine."""
    error: str = ""


@dataclass(frozen=True)
class Combination:
    """One run of a campaign."""

    application: Entry
    grid: Entry
    scheduler: str
    events: str
    estimates: str
    faults: str
    seed: int


@dataclass(frozen=True)
class Done:
    """A combination and its outcome; `kept`: it was already cached."""

    run: Combination
    outcome: Outcome
    kept: bool


@dataclass(frozen=True)
class _Job:
    key: str
    application: Entry
    grid: Entry
    scheduler: str
    setting: SimulationConfig
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)


def combine(campaign: CampaignFile) -> Iterator[Combination]:
    """Every combination; those of the same program and grid are consecutive."""
    for application, grid, seed in product(campaign.applications, campaign.grids, campaign.seeds):
        for rest in product(campaign.schedulers, campaign.events, campaign.estimates, campaign.faults):
            yield Combination(application, grid, *rest, seed)


def check_campaign(campaign: CampaignFile) -> None:
    """Check names, options and files before anything runs."""
    for entry in (*campaign.applications, *campaign.grids):
        try:
            _check_entry(entry)
        except HeadraceError as error:
            raise error if entry.name in error.where else error.at(f"{entry.name!r}") from None
    for grid, faults in product(campaign.grids, filter(None, campaign.faults)):
        made = make_grid(grid, 0)
        parse_faults(faults, made if isinstance(made, Platform) else made.platform, planned=1.0)
    for events, estimates, faults in product(campaign.events, campaign.estimates, campaign.faults):
        setting = make_setting(campaign, events, estimates, faults)
    for scheduler in campaign.schedulers:
        make_scheduler(scheduler, setting.accepted_by(scheduler).policy, **_for_planner(campaign, scheduler))
    _check_rules(campaign)


def _for_planner(campaign: CampaignFile, scheduler: str) -> dict[str, Any]:
    """Constructor arguments of a scheduler: the search time, if it accepts one."""
    given = "time" in campaign.run and "time" in options_taken(scheduler)
    return {"time": campaign.run["time"]} if given else {}


def _check_rules(campaign: CampaignFile) -> None:
    """Reject planning options that no scheduler accepts."""
    taken = {rule for scheduler in campaign.schedulers for rule in policy_fields(scheduler)}
    given = [key for key in campaign.run if key in RULES and key not in taken]
    if campaign.events != ("S2",) and "events" not in taken:
        given.insert(0, "events")
    if "time" in campaign.run and not any(_for_planner(campaign, s) for s in campaign.schedulers):
        given.append("time")
    if given:
        raise UsageError(
            f"no scheduler of the campaign accepts {', '.join(given)}",
            where=campaign.name,
            hint="leave it out, or add a planner such as minmin",
        )
    if "reduce" in campaign.run and not campaign.run.get("subset"):
        raise UsageError(
            "reduce selects the tasks of partial plans, but subset is not set",
            where=f"{campaign.name}: [run]",
            hint="add, for example, subset = 100",
        )


def _check_entry(entry: Entry) -> None:
    """Reject entries that cannot be created; reads files, but generates nothing large."""
    if entry.form == "sweep":
        require_sweep_size(sweep_spec(entry))
    elif entry.form == "grid":
        require_grid_size(grid_spec(entry))
    elif entry.form != "file":
        require_graph_size(entry)
        make_program(entry, 0)


def run_campaign(
    campaign: CampaignFile,
    kept: KeptRuns,
    *,
    workers: int | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Done]:
    """Simulate combinations that are not cached yet, on all cores, and cache each result immediately.

    Equivalent combinations (online schedulers ignore planning events) run once. A run that
    fails is reported and not cached. After an interruption, finished results stay cached.
    """
    check_campaign(campaign)
    runs = list(combine(campaign))
    jobs = list(_jobs(campaign, runs))
    known = {job.key: found for job in jobs if (found := kept.get(job.key)) is not None}
    before = set(known)
    todo = list({job.key: job for job in jobs if job.key not in known}.values())
    tell(f"{len(runs)} runs, {len(runs) - sum(job.key in before for job in jobs)} to do")
    progress = _Progress(len(todo), tell)
    for job, outcome in _simulated(todo, workers or os.cpu_count() or 1, tell):
        known[job.key] = outcome
        if not outcome.error:
            kept.put(job.key, campaign.name, outcome)
        ended = "never ended" if outcome.error else f"{outcome.makespan:.6g} s"
        progress.step(f"{job.scheduler} on {job.application.name}, {job.grid.name}: {ended}")
    return [Done(run, known[job.key], job.key in before) for run, job in zip(runs, jobs, strict=True)]


def _jobs(campaign: CampaignFile, runs: Sequence[Combination]) -> Iterator[_Job]:
    digests = {id(entry): entry_digest(entry, "application") for entry in campaign.applications}
    digests |= {id(entry): entry_digest(entry, "grid") for entry in campaign.grids}
    taken = {scheduler: policy_fields(scheduler) for scheduler in campaign.schedulers}
    own = {scheduler: file_digest(scheduler) for scheduler in campaign.schedulers}
    options = {scheduler: _for_planner(campaign, scheduler) for scheduler in campaign.schedulers}
    rest = json.dumps([sorted(campaign.run.items()), version("headrace")])
    for run in runs:
        planned = run.events if "events" in taken[run.scheduler] else ""
        words = [run.scheduler, own[run.scheduler], planned, run.estimates, run.faults, run.seed, rest]
        words += [digests[id(run.application)], digests[id(run.grid)]]
        setting = make_setting(campaign, run.events, run.estimates, run.faults).accepted_by(run.scheduler)
        key = sha256(json.dumps(words).encode()).hexdigest()
        yield _Job(key, run.application, run.grid, run.scheduler, setting, run.seed, options[run.scheduler])


def _simulated(
    jobs: Sequence[_Job], workers: int, tell: Callable[[str], None]
) -> Iterator[tuple[_Job, Outcome]]:
    """Outcomes as they complete; computed in this process if there is at most one worker or job."""
    if min(workers, len(jobs)) <= 1:
        yield from ((job, simulate_job(job)) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    compiling, told = context.Event(), False
    with ProcessPoolExecutor(min(workers, len(jobs)), context, _begin_worker, (compiling,)) as pool:
        waiting = iter(jobs)
        running: dict[Future[Outcome], _Job] = {}
        try:
            while True:
                for job in waiting:
                    running[pool.submit(simulate_job, job)] = job
                    if len(running) >= 4 * workers:
                        break
                if not running:
                    return
                if compiling.is_set() and not told:
                    told = True
                    tell(first_use(Notice.expected_seconds))
                ended = wait(running, timeout=None if told else 1.0, return_when=FIRST_COMPLETED).done
                for future in sorted(ended, key=lambda f: running[f].key):
                    yield running.pop(future), future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _begin_worker(compiling: Event) -> None:
    """Leave interrupts to the parent process, and report compilation to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    set_notice(Notice(tell=lambda text: compiling.set(), progress=lambda text: None))


def simulate_job(job: _Job) -> Outcome:
    """Simulate one run; if it cannot complete, the outcome says why."""
    program, grid = _made(job)
    try:
        run = simulate_program(program, grid, job.scheduler, job.setting, seed=job.seed, **job.options)
    except NoPlan as error:
        return Outcome(error=str(error))
    return Outcome(
        makespan=run.makespan,
        bound=run.bound,
        bytes_moved=run.bytes_moved,
        plans=run.plans,
        redone=run.redone,
        log_events=run.events,
        deciding=run.deciding,
    )


_recent: dict[tuple[str, str, int], tuple[Program, GridScript | Platform]] = {}
"""The program and grid of the latest job; consecutive jobs often share them."""


def _made(job: _Job) -> tuple[Program, GridScript | Platform]:
    key = (repr(job.application), repr(job.grid), job.seed)
    if key not in _recent:
        made = make_program(job.application, job.seed), make_grid(job.grid, job.seed)
        _recent.clear()
        _recent[key] = made
    return _recent[key]


class _Progress:
    """Reports progress, at most once a second."""

    def __init__(self, total: int, tell: Callable[[str], None]) -> None:
        self.total, self.tell = total, tell
        self.done = 0
        self.began = self.said = time.monotonic()

    def step(self, what: str) -> None:
        self.done += 1
        now = time.monotonic()
        if now - self.said >= 1.0 or self.done == self.total:
            self.said = now
            left = (now - self.began) / self.done * (self.total - self.done)
            self.tell(f"{self.done} of {self.total}, about {left:.0f} s left: {what}")


class KeptRuns:
    """Cached outcomes of simulated runs in the record's folder ($HEADRACE_HOME or ./.headrace)."""

    def __init__(self, folder: Path | None = None) -> None:
        table = "runs (key TEXT PRIMARY KEY, campaign TEXT, outcome TEXT)"
        self._connection = open_kept(folder, "campaigns.sqlite", table)

    def get(self, key: str) -> Outcome | None:
        found = self._connection.execute("SELECT outcome FROM runs WHERE key = ?", (key,)).fetchone()
        return Outcome(**json.loads(found[0])) if found else None

    def put(self, key: str, campaign: str, outcome: Outcome) -> None:
        text = json.dumps(outcome._asdict())
        with self._connection:
            self._connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?)", (key, campaign, text))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
