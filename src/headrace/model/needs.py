"""What tasks need of their host besides cores while they run: memory and named resources, such as GPUs.

At any moment the tasks that run on a host have no more of each together than it has. A task that says nothing needs
nothing. A host without a given memory has any amount of it; a host has none of a resource that it does not name.
All amounts are whole numbers: bytes are rounded up for tasks and down for hosts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.model.errors import HeadraceError, NoPlan
from headrace.model.units import show_size

if TYPE_CHECKING:
    from headrace.model.graph import Graph
    from headrace.model.platform import Platform
    from headrace.model.program import Task

MEMORY = "memory"
"""The name of the need that is counted in bytes."""
CORES = "cores"
MOST_MEMORY = 2**53
"""The largest number of bytes that a task can need: sums of whole numbers up to this are exact."""
_MOST = 10**9
"""The largest number of units of a resource."""
_RESERVED = (MEMORY, CORES)


class Needs(NamedTuple):
    """What the tasks of a program need, one column for each thing that any of them needs."""

    names: tuple[str, ...]
    amount: NDArray[np.float64]
    """[tasks, names]"""

    def of_tasks(self, tasks: NDArray[np.int32]) -> Needs:
        """The needs of some of the tasks."""
        return Needs(self.names, self.amount[tasks]) if self.names else self


NO_NEEDS = Needs((), np.zeros((0, 0)))


def needs_of(tasks: Iterable[Task]) -> Needs:
    """The needs of tasks: O(tasks * resources).

    >>> from headrace.model.program import Task
    >>> needs_of([Task("a", 1.0, memory=5.0), Task("b", 1.0, resources={"gpu": 2})])
    Needs(names=('memory', 'gpu'), amount=array([[5., 0.],
           [0., 2.]]))
    """
    every = list(tasks)
    names = [MEMORY] if any(task.memory > 0 for task in every) else []
    names += sorted({name for task in every for name, count in task.resources.items() if count > 0})
    if not names:
        return NO_NEEDS
    amount = [
        [math.ceil(task.memory) if name == MEMORY else float(task.resources.get(name, 0)) for name in names]
        for task in every
    ]
    return Needs(tuple(names), np.array(amount, np.float64))


def capacity(platform: Platform, names: tuple[str, ...]) -> NDArray[np.float64]:
    """[hosts, names] how much of each a host has.

    >>> from headrace.model.platform import Host, Platform, Site
    >>> lab = Platform((Site("a", (Host("x", memory="1 kB"), Host("y", resources={"gpu": 2}))),))
    >>> capacity(lab, ("memory", "gpu")).tolist()
    [[1000.0, 0.0], [inf, 2.0]]
    """
    has = [
        [np.floor(host.memory) if name == MEMORY else float(host.resources.get(name, 0)) for name in names]
        for host in platform.hosts
    ]
    return np.array(has, np.float64).reshape(len(has), len(names))


def fit_classes(graph: Graph, platform: Platform) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """The class of each task by what it needs, cores included, and [classes, hosts] where tasks of a class fit.

    Needs that no host tells apart are one class. O(needs * tasks log tasks + classes * hosts).
    """
    needed = _with_cores(graph)
    has = np.column_stack((capacity(platform, graph.needs.names), [host.cores for host in platform.hosts]))
    steps = [np.unique(column) for column in has.T]
    least = np.column_stack([np.searchsorted(step, some) for step, some in zip(steps, needed.T, strict=True)])
    rank = np.column_stack([np.searchsorted(step, some) for step, some in zip(steps, has.T, strict=True)])
    rows, of_task = np.unique(least, axis=0, return_inverse=True)
    fits: NDArray[np.bool_] = np.logical_and.reduce(rows[:, None, :] <= rank[None, :, :], axis=2)
    return of_task.reshape(-1).astype(np.int32), fits


def fitting(graph: Graph, platform: Platform) -> NDArray[np.bool_]:
    """[tasks, hosts] where each task could run alone: the host has the cores and all else that it needs."""
    of_task, fits = fit_classes(graph, platform)
    found: NDArray[np.bool_] = fits[of_task]
    return found


def _with_cores(graph: Graph) -> NDArray[np.float64]:
    amount = graph.needs.amount if graph.needs.names else np.zeros((graph.n_tasks, 0))
    return np.column_stack((amount, graph.cores))


def require_fitting(graph: Graph, platform: Platform) -> None:
    """
    Raises:
        NoPlan: A task fits on no host, even alone.
    """
    if not graph.needs.names and graph.cores.max(initial=1) <= max(host.cores for host in platform.hosts):
        return
    why = _why_nowhere(graph, platform)
    if why is not None:
        hint = "lower what it needs, or add a host that has as much"
        raise NoPlan(why, where=f"{graph.name} on {platform.name}", hint=hint)


def _why_nowhere(graph: Graph, platform: Platform) -> str | None:
    """Why the first task that fits on no host does not, as a sentence; None if all fit somewhere."""
    of_task, fits = fit_classes(graph, platform)
    somewhere: NDArray[np.bool_] = np.logical_or.reduce(fits, axis=1)
    nowhere = np.flatnonzero(~somewhere[of_task])
    if not len(nowhere):
        return None
    task, names = int(nowhere[0]), (*graph.needs.names, CORES)
    needed = _with_cores(graph)[task]
    has = np.column_stack((capacity(platform, graph.needs.names), [host.cores for host in platform.hosts]))
    asked = [show_need(what, float(amount)) for what, amount in zip(names, needed, strict=True) if amount]
    for what, amount, most in zip(names, needed, has.max(axis=0), strict=True):
        if amount > most:
            asked, least = [show_need(what, float(amount))], f"more than {_bare(what, float(most))}"
            return f"task {graph.task_names[task]!r} needs {asked[0]}, but no host has {least}"
    return f"task {graph.task_names[task]!r} needs {', '.join(asked)}, but no host has all of it"


def show_need(name: str, amount: float) -> str:
    """
    >>> show_need("memory", 2e9), show_need("gpu", 2.0), show_need("cores", 4)
    ('2 GB of memory', "2 of 'gpu'", '4 cores')
    """
    if name == CORES:
        return f"{amount:g} cores"
    return f"{_bare(name, amount)} of {name if name == MEMORY else repr(name)}"


def _bare(name: str, amount: float) -> str:
    return show_size(amount) if name == MEMORY else f"{amount:g}"


def checked_resources(given: Any, where: str, error: type[HeadraceError]) -> dict[str, int]:
    """Whole numbers of named resources; anything else is an error of the given type."""
    if not isinstance(given, Mapping):
        raise error(f"resources is {given!r}", where=where, hint='give names and numbers, such as {"gpu": 1}')
    for name, count in given.items():
        if not isinstance(name, str) or not name.strip():
            raise error(f"the name of a resource is {name!r}", where=where, hint="give a text")
        if name in _RESERVED:
            raise error(f"a resource is named {name!r}", where=where, hint=f"give `{name}` by itself")
        if not isinstance(count, int | np.integer) or isinstance(count, bool) or not 0 <= count <= _MOST:
            raise error(
                f"resource {name!r} is {count!r}",
                where=where,
                hint=f"give a whole number from 0 to {_MOST:,}",
            )
    return {name: int(count) for name, count in given.items()}
