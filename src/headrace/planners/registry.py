"""All planners by name: a new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from typing import Any, cast

from headrace.core.scheduler import Planner
from headrace.formats.python_program import load_from_file
from headrace.model.errors import UsageError


@dataclass(frozen=True, slots=True)
class Entry:
    """A planner as `headrace schedulers` lists it; its module is imported when it is used.

    A class with a method `plan` is a planner; one with `react` decides while a program runs.
    """

    name: str
    module: str
    maker: str
    programs: str
    line: str
    source: str


ENTRIES = (
    Entry("auto", "headrace.planners.auto", "Auto", "all",
          "several that fit, each judged by carrying its plan out; keeps the best plan", "Headrace"),
    Entry("best", "headrace.planners.best", "Best", "all",
          "as auto, then improved by local search until the time (--time) is up", "Headrace"),
    Entry("heft", "headrace.planners.heft", "Heft", "task graphs",
          "upward rank, earliest finish, gaps filled; transfers booked on limited links",
          "Topcuoglu, Hariri, Wu 2002"),
    Entry("cpop", "headrace.planners.cpop", "Cpop", "task graphs",
          "the critical path on one host, the rest by earliest finish", "Topcuoglu, Hariri, Wu 2002"),
    Entry("peft", "headrace.planners.peft", "Peft", "task graphs",
          "earliest finish plus the least time from there to the end", "Arabnejad, Barbosa 2014"),
    Entry("locality", "headrace.planners.lheft", "LHeft", "task graphs",
          "level by level; a task whose inputs all lie on one host stays there", "Headrace"),
    Entry("lheft", "headrace.online.lheft", "LHeft", "task graphs",
          "decides while the program runs: ready tasks go where their data is, queues are rebalanced",
          "macro-dataflow runtime, sections 4.3 and 4.4"),
    Entry("dheft", "headrace.online.dheft", "DHeft", "task graphs",
          "heft, planned again in a run when a time is off by a factor of 2 or hosts come and go",
          "macro-dataflow runtime, section 5.4"),
    Entry("wu-gajski", "headrace.planners.wu_gajski", "WuGajski", "task graphs",
          "longest path to the end first, earliest start", "Wu, Gajski 1988"),
    Entry("subset", "headrace.planners.subset", "Subset", "all",
          "heft on the best of several subsets of hosts", "Headrace"),
    Entry("single-host", "headrace.planners.single_host", "SingleHost", "all",
          "everything on the host that does it soonest", "comparator"),
    Entry("round-robin", "headrace.planners.round_robin", "RoundRobin", "all",
          "tasks dealt out in turn, blind to speed and data", "comparator"),
    Entry("minmin", "headrace.planners.minmin", "MinMin", "all",
          "of the ready tasks the one that can be complete first (H1)", "Maheswaran and others 1999"),
    Entry("maxmin", "headrace.planners.maxmin", "MaxMin", "all",
          "of the ready tasks the one that is complete last on its best host (H2)",
          "Maheswaran and others 1999"),
    Entry("sufferage", "headrace.planners.sufferage", "Sufferage", "all",
          "the ready task that loses most without its best host (H3)", "Maheswaran and others 1999"),
    Entry("xsufferage", "headrace.planners.xsufferage", "ExtendedSufferage", "sweeps",
          "the ready task that loses most without its good clusters (H4)", "Berman and others 1999"),
    Entry("random-minmin", "headrace.planners.randomized", "RandomMinMin", "all",
          "min-min, drawn among the nearly best (H5)", "Berman and others 1999"),
    Entry("random-maxmin", "headrace.planners.randomized", "RandomMaxMin", "all",
          "max-min, drawn among the nearly best (H6)", "Berman and others 1999"),
    Entry("random-sufferage", "headrace.planners.randomized", "RandomSufferage", "all",
          "sufferage, drawn among the nearly best (H7)", "Berman and others 1999"),
    Entry("random-xsufferage", "headrace.planners.randomized", "RandomExtendedSufferage", "sweeps",
          "extended sufferage, drawn among the nearly best (H8)", "Berman and others 1999"),
    Entry("sufferage2", "headrace.planners.sufferage2", "SufferageTwo", "sweeps",
          "the ready task with the fewest good clusters (H9)", "Berman and others 1999"),
    Entry("coschedule", "headrace.planners.coschedule.planner", "Coschedule", "all",
          "jobs, transfers link by link and disks planned together, until the time (--time) is up",
          "Makatun and others 2015, extended"),
    Entry("local", "headrace.planners.coschedule.comparators", "Local", "all",
          "all jobs at one site, as given", "comparator of the co-scheduling paper"),
    Entry("equal-load", "headrace.planners.coschedule.comparators", "EqualLoad", "all",
          "jobs, as given, to the host with least work per core", "comparator of the co-scheduling paper"),
    Entry("pull", "headrace.planners.coschedule.comparators", "Pull", "all",
          "each idle core takes the next job and holds it while its input travels",
          "comparator of the co-scheduling paper"),
    Entry("workqueue", "headrace.online.workqueue", "Workqueue", "all",
          "the next ready task to the fastest host with a free core (H0)", "comparator"),
)  # fmt: skip

DEFAULT = "auto"
_by_name = {entry.name: entry for entry in ENTRIES}


def register(entry: Entry) -> None:
    """Add a planner of one's own, under a name that is not taken."""
    if entry.name in _by_name:
        raise UsageError(f"scheduler {entry.name!r} exists already", hint="choose another name")
    _by_name[entry.name] = entry


def names() -> list[str]:
    """
    >>> "heft" in names()
    True
    """
    return list(_by_name)


def entries() -> list[Entry]:
    """All planners, those that were registered last."""
    return list(_by_name.values())


def make(name: str, **options: Any) -> Planner:
    """The planner of that name; `file.py:Name` is a class of one's own. Options go to its constructor.

    >>> make("round-robin").name
    'round-robin'
    """
    made: Planner = construct(_maker(name), name, options)
    return _checked(made, name) if ".py:" in name else made


def _maker(name: str) -> Callable[..., Any]:
    if ".py:" in name:
        own = load_from_file(name)
        if not callable(own):
            raise UsageError(f"{name!r} is not a class", hint="name the class of your planner")
        return cast(Callable[..., Any], own)
    if name not in _by_name:
        near = get_close_matches(name, _by_name, 1)
        raise UsageError(
            f"there is no scheduler {name!r}",
            hint=f"{near[0]!r}" if near else f"one of {', '.join(_by_name)}",
        )
    entry = _by_name[name]
    return cast(Callable[..., Any], getattr(import_module(entry.module), entry.maker))


def options_taken(name: str) -> tuple[str, ...]:
    """What the constructor of a planner takes.

    >>> options_taken("round-robin"), "time" in options_taken("best")
    ((), True)
    """
    return tuple(signature(_maker(name)).parameters)


def construct(maker: Callable[..., Any], name: str, options: dict[str, Any]) -> Any:
    """Call a scheduler's class; an option that it does not know is an error that says which it knows."""
    known = signature(maker).parameters
    for option in options:
        if option not in known:
            raise UsageError(
                f"{name!r} takes no {option!r}",
                hint=f"it takes {', '.join(known)}" if known else "leave it out",
            )
    return maker(**options)


def _checked(planner: Any, name: str) -> Planner:
    if not (callable(getattr(planner, "plan", None)) and isinstance(getattr(planner, "name", None), str)):
        raise UsageError(
            f"{name!r} is not a planner", hint="give the class a `name` and a method `plan(problem)`"
        )
    made: Planner = planner
    return made
