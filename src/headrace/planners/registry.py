"""Registry of planners and schedulers by name: add one by a file and a line here, or by an entry point of a package.

A package registers its own in its `pyproject.toml`:

    [project.entry-points."headrace.schedulers"]
    largest-first = "my_package.largest_first:LargestFirst"
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from typing import Any, cast

from headrace.core.scheduler import Planner
from headrace.formats.python_program import load_from_file
from headrace.model.errors import UsageError
from headrace.model.user_code import user_code


@dataclass(frozen=True, slots=True)
class Entry:
    """A planner or scheduler as listed by `headrace schedulers`; its module is imported on first use.

    A class with a method `plan` is a planner; a class with `react` is an online scheduler.
    """

    name: str
    module: str
    maker: str
    programs: str
    line: str
    source: str


ENTRIES = (
    Entry("auto", "headrace.planners.search.auto", "Auto", "all",
          "several suitable planners, compared by simulating their plans; keeps the best plan", "Headrace"),
    Entry("best", "headrace.planners.search.best", "Best", "all",
          "as auto, then improved by local search within the time limit (--time)", "Headrace"),
    Entry("search", "headrace.planners.search.best_first", "BestFirst", "task graphs",
          "best-first search over partial schedules, directed by rules; --hurry trades quality for time",
          "Ahrens and others 1997, section 3.3"),
    Entry("heft", "headrace.planners.list.heft", "Heft", "task graphs",
          "upward rank, earliest finish, gaps filled; transfers booked on limited links",
          "Topcuoglu, Hariri, Wu 2002"),
    Entry("cpop", "headrace.planners.list.cpop", "Cpop", "task graphs",
          "the critical path on one host, the rest by earliest finish", "Topcuoglu, Hariri, Wu 2002"),
    Entry("peft", "headrace.planners.list.peft", "Peft", "task graphs",
          "earliest finish plus the least time from there to the end", "Arabnejad, Barbosa 2014"),
    Entry("locality", "headrace.planners.list.locality", "Locality", "task graphs",
          "level by level; a task whose inputs are all on one host stays there", "Headrace"),
    Entry("lheft", "headrace.online.lheft", "LHeft", "task graphs",
          "decides while the program runs: ready tasks go where their data is, queues are rebalanced",
          "Jin, Buyya (about 2007), sections 4.3 and 4.4"),
    Entry("dheft", "headrace.online.dheft", "DHeft", "task graphs",
          "heft, replanned when a run time is mispredicted by a factor of 2 or hosts join or leave",
          "Jin, Buyya (about 2007), section 5.4"),
    Entry("wu-gajski", "headrace.planners.list.wu_gajski", "WuGajski", "task graphs",
          "longest path to the end first, earliest start", "Wu, Gajski 1988"),
    Entry("subset", "headrace.planners.search.subset", "Subset", "all",
          "heft on the best of several subsets of hosts", "Headrace"),
    Entry("restarts", "headrace.planners.search.restarts", "Restarts", "all",
          "heft with perturbed ranks, prices of busy links and contended cores, and subsets of hosts", "Headrace"),
    Entry("single-host", "headrace.planners.list.single_host", "SingleHost", "all",
          "all tasks on the host that completes them soonest", "comparator"),
    Entry("round-robin", "headrace.planners.list.round_robin", "RoundRobin", "all",
          "tasks to hosts in turn, regardless of speed and data", "comparator"),
    Entry("minmin", "headrace.planners.batch.minmin", "MinMin", "all",
          "ready task with the smallest best completion time first (H1)", "Maheswaran and others 1999"),
    Entry("maxmin", "headrace.planners.batch.maxmin", "MaxMin", "all",
          "ready task with the largest best completion time first (H2)",
          "Maheswaran and others 1999"),
    Entry("sufferage", "headrace.planners.batch.sufferage", "Sufferage", "all",
          "ready task that loses most without its best host first (H3)", "Maheswaran and others 1999"),
    Entry("xsufferage", "headrace.planners.batch.xsufferage", "ExtendedSufferage", "sweeps",
          "ready task that loses most without its good clusters first (H4)", "Berman and others 1999"),
    Entry("random-minmin", "headrace.planners.batch.randomized", "RandomMinMin", "all",
          "min-min, random choice among the nearly best (H5)", "Berman and others 1999"),
    Entry("random-maxmin", "headrace.planners.batch.randomized", "RandomMaxMin", "all",
          "max-min, random choice among the nearly best (H6)", "Berman and others 1999"),
    Entry("random-sufferage", "headrace.planners.batch.randomized", "RandomSufferage", "all",
          "sufferage, random choice among the nearly best (H7)", "Berman and others 1999"),
    Entry("random-xsufferage", "headrace.planners.batch.randomized", "RandomExtendedSufferage", "sweeps",
          "extended sufferage, random choice among the nearly best (H8)", "Berman and others 1999"),
    Entry("sufferage2", "headrace.planners.batch.sufferage2", "SufferageTwo", "sweeps",
          "ready task with the fewest good clusters first (H9)", "Berman and others 1999"),
    Entry("coschedule", "headrace.planners.coschedule.planner", "Coschedule", "all",
          "plans jobs, transfers link by link and disks together, within the time limit (--time)",
          "Makatun and others 2015, extended"),
    Entry("local", "headrace.planners.coschedule.comparators", "Local", "all",
          "all jobs at one site, in the given order", "comparator of Makatun and others 2015"),
    Entry("equal-load", "headrace.planners.coschedule.comparators", "EqualLoad", "all",
          "jobs, in the given order, to the host with least work per core", "comparator of Makatun and others 2015"),
    Entry("pull", "headrace.planners.coschedule.comparators", "Pull", "all",
          "each idle core takes the next job and waits for its input",
          "comparator of Makatun and others 2015"),
    Entry("workqueue", "headrace.online.workqueue", "Workqueue", "all",
          "the next ready task to the fastest host with a free core (H0)", "comparator"),
)  # fmt: skip

DEFAULT = "auto"
ENTRY_POINTS = "headrace.schedulers"
"""The entry point group in which packages register their schedulers."""
_by_name = {entry.name: entry for entry in ENTRIES}


def register(entry: Entry) -> None:
    """Add a planner or scheduler.

    Raises:
        UsageError: The name is already in use.
    """
    if entry.name in names():
        raise UsageError(f"scheduler {entry.name!r} already exists", hint="choose another name")
    _by_name[entry.name] = entry


def names() -> list[str]:
    """The names of all planners and schedulers, those of installed packages last.

    >>> "heft" in names()
    True
    """
    return [entry.name for entry in entries()]


def entries() -> list[Entry]:
    """All planners and schedulers, those of installed packages last.

    >>> [entry.maker for entry in entries() if entry.name == "heft"]
    ['Heft']
    """
    installed = [entry for name, entry in _installed().items() if name not in _by_name]
    return [*_by_name.values(), *installed]


def _installed() -> dict[str, Entry]:
    """Schedulers that installed packages provide by entry point."""
    return {
        point.name: Entry(point.name, point.module, point.attr, "all", f"from {_package(point)}", "installed")
        for point in entry_points(group=ENTRY_POINTS)
    }


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.module.partition(".")[0]


def make(name: str, **options: Any) -> Planner:
    """Make the planner or scheduler of this name.

    Args:
        name: A name that `names` lists, or `file.py:Class`.
        options: Passed to its constructor.

    Raises:
        UsageError: There is no such name or option, or the class cannot be loaded.

    >>> make("round-robin").name
    'round-robin'
    """
    name = registered_name(name)
    made = construct(_maker(name), name, options)
    return made if name in _by_name else _checked(made, name)


def registered_name(text: str) -> str:
    """The name as it is registered, whatever its capitals; other texts as they are.

    >>> registered_name("HEFT"), registered_name("Dask"), registered_name("mine.py:Own")
    ('heft', 'dask', 'mine.py:Own')
    """
    if text in _by_name or ".py:" in text:
        return text
    same = (name for name in (*names(), "dask") if name.casefold() == text.casefold())
    return next(same, text)


def _has_scheduler_methods(value: Any) -> bool:
    """Whether this is a class of the user's own that plans or reacts."""
    own = isinstance(value, type) and not value.__module__.startswith("headrace.")
    return own and any(callable(getattr(value, method, None)) for method in ("plan", "react"))


def _maker(name: str) -> Callable[..., Any]:
    if ".py:" in name:
        own = load_from_file(name, _has_scheduler_methods)
        if not callable(own):
            raise UsageError(f"{name!r} is not a class", hint="use the name of a planner class")
        return cast(Callable[..., Any], own)
    if name in _by_name:
        return _load(_by_name[name])
    installed = _installed()
    if name in installed:
        return _load_installed(installed[name])
    known = [*_by_name, *installed]
    near = get_close_matches(name, known, 1)
    raise UsageError(
        f"there is no scheduler {name!r}", hint=f"{near[0]!r}" if near else f"use one of {', '.join(known)}"
    )


def _load(entry: Entry) -> Callable[..., Any]:
    return cast(Callable[..., Any], getattr(import_module(entry.module), entry.maker))


def _load_installed(entry: Entry) -> Callable[..., Any]:
    """As `_load`, for a class of another package; errors name that package."""
    try:
        return _load(entry)
    except Exception as error:
        raise UsageError(
            f"scheduler {entry.name!r} cannot be loaded: {type(error).__name__}: {error}",
            where=f"{entry.module}:{entry.maker}, {entry.line}",
            hint="fix or uninstall that package",
        ) from error


def options_taken(name: str) -> tuple[str, ...]:
    """The options that the constructor of a planner or scheduler accepts.

    >>> options_taken("round-robin"), "time" in options_taken("best")
    ((), True)
    """
    return tuple(signature(_maker(name)).parameters)


_INSTEAD = {
    "time": "best, which searches for this time",
    "chunk": "coschedule, which plans this many jobs at a time",
}
"""The scheduler to suggest for an option that few accept."""


def construct(maker: Callable[..., Any], name: str, options: dict[str, Any]) -> Any:
    """Call a scheduler's class; raises UsageError with the known options for an unknown one."""
    known = signature(maker).parameters
    for option in options:
        if option not in known:
            instead = _INSTEAD.get(option, f"it accepts {', '.join(known)}" if known else "omit it")
            raise UsageError(f"{name!r} does not accept {option!r}", hint=instead)
    with user_code(f"the scheduler {name!r}"):
        return maker(**options)


def _checked(made: Any, name: str) -> Planner:
    """Check that an object from outside this package is a planner or scheduler."""
    able = callable(getattr(made, "plan", None)) or callable(getattr(made, "react", None))
    if not (able and isinstance(getattr(made, "name", None), str)):
        raise UsageError(
            f"{name!r} is neither a planner nor a scheduler",
            hint="define `name` and a method `plan(problem)` or `react(view, events)` in the class",
        )
    return cast(Planner, made)
