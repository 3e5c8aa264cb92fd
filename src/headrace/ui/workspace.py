"""What the page does, without HTTP: files of a folder, plans in threads, rules, and runs of the record."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.model.errors import BadRules, HeadraceError, UsageError
from headrace.ui.feed import Feed
from headrace.ui.jobs import Jobs
from headrace.ui.live import Launcher
from headrace.ui.stream_process import StreamLauncher

if TYPE_CHECKING:
    from headrace.core.scheduler import Problem
    from headrace.model.plan import Plan
    from headrace.planners.rule_costs import RuleCost

MOST_FILES = 2_000
MOST_RUNNING = 4
MOST_SECONDS = 3600.0
MOST_PLANS = 64
"""Plans that are kept for comparison; the oldest go first."""
_PAUSE = 0.2
"""Least seconds between two reports of progress."""
_SKIPPED = ("node_modules", "__pycache__")


@dataclass
class PlanJob:
    """A plan that is being made, or was."""

    number: int
    request: PlanRequest
    status: str = "running"
    answer: dict[str, Any] = field(default_factory=dict)
    plan: Plan | None = None
    stopped: bool = False
    """Whether the plan that is there is good enough."""

    def facts(self) -> dict[str, Any]:
        return {"job": self.number, "status": self.status, "request": asdict(self.request), **self.answer}


@dataclass(frozen=True)
class PlanRequest:
    """What to plan; files are relative to the folder of the page."""

    program: str
    platform: str = "local"
    scheduler: str = "auto"
    rules: str = ""
    execute: bool = False
    """Whether a Python file may be executed to read its program."""
    seconds: float = 10.0
    """Search time of schedulers that search."""


@dataclass(frozen=True)
class Move:
    """A task that was dragged to a host and a start."""

    task: str
    host: str
    start: float


class Workspace:
    """The files below a folder, and what was planned from them."""

    def __init__(self, root: Path, feed: Feed) -> None:
        self.root = root.resolve()
        self.feed = feed
        self.launcher = Launcher(self.root, self.path, feed)
        self.jobs: Jobs = Jobs(feed)
        self.streams = StreamLauncher(self.root, feed)
        self._jobs: dict[int, PlanJob] = {}
        self._lock = threading.Lock()
        self._next = 1

    def files(self) -> list[dict[str, str]]:
        """Programs, platforms and rules below the folder, by what their names say; hidden folders are left out."""
        found = []
        for inside, folders, names in os.walk(self.root):
            folder = Path(inside)
            folders[:] = sorted(n for n in folders if not n.startswith(".") and n not in _SKIPPED)
            for name in sorted(names):
                kind = kind_of(name)
                if kind == "platform":
                    kind = described_kind(folder / name)
                if kind and not name.startswith("."):
                    found.append({"path": str((folder / name).relative_to(self.root)), "kind": kind})
                if len(found) == MOST_FILES:
                    return found
        return found

    def path(self, given: str) -> Path:
        """A file below the folder; UsageError for any other."""
        try:
            path = (self.root / given).resolve()
            if path.is_relative_to(self.root) and path.is_file():
                return path
        except (OSError, ValueError, RuntimeError):
            pass  # a name that no file can have
        raise UsageError(
            f"there is no file {given[:100]!r} below the folder of the page", hint=str(self.root)
        )

    def schedulers(self) -> list[dict[str, str]]:
        """What can plan task graphs."""
        from headrace.planners.registry import ENTRIES

        return [{"name": e.name, "programs": e.programs, "line": e.line} for e in ENTRIES]

    def start_plan(self, request: PlanRequest) -> PlanJob:
        """Begin to plan in a thread; progress and the end go to the feed."""
        self._require_allowed(request)
        with self._lock:
            if sum(one.status == "running" for one in self._jobs.values()) >= MOST_RUNNING:
                raise UsageError(f"{MOST_RUNNING} plans are being made", hint="wait for one of them")
            job = PlanJob(self._next, request)
            self._next += 1
            self._jobs[job.number] = job
            for old in [n for n, one in self._jobs.items() if one.status != "running"][:-MOST_PLANS]:
                del self._jobs[old]
        threading.Thread(target=self._plan, args=(job,), daemon=True).start()
        return job

    def job(self, number: int) -> PlanJob:
        if number not in self._jobs:
            raise UsageError(f"there is no plan {number}", hint="make it again")
        return self._jobs[number]

    def stop_plan(self, number: int) -> dict[str, Any]:
        """Tell a search that what it has found is good enough; others end by themselves."""
        job = self.job(number)
        job.stopped = True
        return {"job": number, "status": job.status}

    def offers(self, number: int, moved: Move, rules: str) -> list[dict[str, str]]:
        """Rules for a task that was moved, each with all rules together once it is taken."""
        from headrace.ui.rule_offers import offered, with_offer

        plan = self.job(number).plan
        if plan is None:
            raise UsageError(f"plan {number} is not done", hint="wait for it")
        found = offered(plan, moved.task, moved.host, moved.start)
        return [{"says": one.says, "text": one.text, "rules": with_offer(rules, one)} for one in found]

    def _require_allowed(self, request: PlanRequest) -> None:
        if not 0 < request.seconds <= MOST_SECONDS:
            raise UsageError(f"a search cannot take {request.seconds} s", hint=f"at most {MOST_SECONDS:g} s")
        self.require_case(request.program, request.platform, request.scheduler, execute=request.execute)

    def require_case(self, program: str, platform: str, scheduler: str, *, execute: bool) -> None:
        """Refuse unknown schedulers, files outside the folder, and Python files that may not be executed."""
        from headrace.planners.registry import ENTRIES

        if scheduler not in {entry.name for entry in ENTRIES}:
            raise UsageError(f"there is no scheduler {scheduler[:100]!r}", hint="headrace schedulers")
        file = program.partition(":")[0]
        self.path(file)
        if platform != "local":
            self.path(platform)
        if file.endswith(".py") and not execute:
            raise UsageError(f"{file} would be executed", hint="allow it, if you trust the file")

    def _plan(self, job: PlanJob) -> None:
        try:
            job.answer = _planned(self, job, self._progress(job))
            job.status = "done"
        except HeadraceError as error:
            job.answer, job.status = {"error": str(error)}, "failed"
        except Exception as error:
            # A program of the user's can raise anything; the page must hear of it.
            job.answer, job.status = {"error": f"{type(error).__name__}: {error}"}, "failed"
        self.feed.publish("plan", {"job": job.number, "status": job.status})

    def _progress(self, job: PlanJob) -> Callable[[float, float, float], None]:
        last = -_PAUSE

        def tell(passed: float, makespan: float, bound: float) -> None:
            nonlocal last
            if time.monotonic() - last >= _PAUSE:
                last = time.monotonic()
                now = {"seconds": passed, "makespan": makespan, "bound": bound}
                self.feed.publish("plan", {"job": job.number, "status": "running", **now})

        return tell


def _planned(space: Workspace, job: PlanJob, tell: Callable[[float, float, float], None]) -> dict[str, Any]:
    from headrace.api import plan
    from headrace.commands.judged_plan import judge
    from headrace.core.scheduler import Problem
    from headrace.formats.loading import load_platform, load_program
    from headrace.report.schedule_data import plan_data
    from headrace.report.tables import summary
    from headrace.rules.parser import parse_rules

    request = job.request
    file, colon, name = request.program.partition(":")
    program = load_program(f"{space.path(file)}{colon}{name}")
    platform = load_platform("local" if request.platform == "local" else space.path(request.platform))
    rules = parse_rules(request.rules) if request.rules.strip() else None
    options: dict[str, Any] = {}
    if request.scheduler in ("best", "coschedule"):
        options = {"time": request.seconds, "tell": tell}
    if request.scheduler == "best":
        options["stop"] = lambda: job.stopped
    made = plan(program, platform, request.scheduler, rules=rules, **options)
    job.plan = made
    answer = {
        "schedule": plan_data(made, idle_hosts=True),
        "summary": summary(made),
        "makespan": made.makespan,
    }
    if rules is None or not len(rules):
        return answer
    options = {name: value for name, value in options.items() if name == "time"}
    if job.stopped:
        options["time"] = min(
            options["time"], 1.0
        )  # who does not wait for the plan does not wait for its costs
    costs = _rule_costs(request.scheduler, options, Problem(made.graph, platform, rules=rules), made)
    return answer | judge(rules, made.graph, made, costs).facts()


def _rule_costs(
    scheduler: str, options: dict[str, Any], problem: Problem, made: Plan
) -> dict[str, RuleCost] | None:
    """What each rule costs; None for schedulers that decide while a program runs."""
    from headrace.online.adapter import is_scheduler
    from headrace.planners.registry import make
    from headrace.planners.rule_costs import rule_costs

    planner = make(scheduler, **options)
    if is_scheduler(planner):
        return None
    return rule_costs(planner, problem, made)


def check_rules(text: str) -> list[dict[str, Any]]:
    """What is wrong with rules, each with its place; empty if nothing is.

    >>> [(e["line"], e["column"]) for e in check_rules("assert nonsense")]
    [(1, 8)]
    """
    from headrace.rules.parser import parse_rules

    try:
        parse_rules(text)
    except BadRules as error:
        return [
            {"problem": one.problem, "hint": one.hint, "line": one.line, "column": one.column}
            for one in (error, *error.others)
        ]
    return []


def attributes() -> list[dict[str, str]]:
    """What rules can speak of, for completion."""
    from headrace.rules.attributes import RELATIONS

    return [{"relation": relation, "name": name} for relation, of in RELATIONS.items() for name in of]


def runs() -> list[dict[str, Any]]:
    """The runs of the record, newest first."""
    from headrace.record import Record

    with Record.open() as record:
        return [asdict(row) for row in record.runs()[::-1]]


def run(name: str) -> dict[str, Any]:
    """A run of the record over its plan, with causes; without a schedule if the run has not come so far."""
    from headrace.commands.report import recorded_run
    from headrace.record import Record
    from headrace.report.schedule_data import run_data

    try:
        finished, rules = recorded_run(name)
    except UsageError:
        with Record.open() as record:
            if record.run(name).status == "running":
                return {"schedule": None, "rules": None}
        raise
    table = None if rules is None else {"headers": list(rules[0]), "rows": [list(row) for row in rules[1]]}
    return {"schedule": run_data(finished), "rules": table}


def described_kind(path: Path) -> str:
    """What a TOML or INI file describes, by its beginning; "" if the page has no use for it."""
    from headrace.formats.registry import detect

    try:
        kind = detect(path).kind
    except HeadraceError:
        return "platform"  # choosing it tells what is wrong with it
    known = {"grid": "platform"} | {one: one for one in ("program", "platform", "pipeline", "deployment")}
    return known.get(kind, "")


def kind_of(name: str) -> str:
    """What a file's name says it is; "" if the page has no use for it.

    >>> kind_of("montage.json.gz"), kind_of("lab.toml"), kind_of("a.plan.json"), kind_of("notes.md")
    ('program', 'platform', '', '')
    """
    if name.endswith((".plan.json", "package.json", "package-lock.json", "tsconfig.json")):
        return ""
    endings = {
        "program": (".json", ".json.gz", ".py", ".pst", ".csv"),
        "platform": (".toml", ".ini"),
        "rules": (".rules",),
    }
    return next((kind for kind, ends in endings.items() if name.endswith(ends)), "")
