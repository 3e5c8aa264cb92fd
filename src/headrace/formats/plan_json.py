"""Plans as JSON, read back against a program and a platform."""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import FailFast, Field, TypeAdapter

from headrace.formats.files import encode_text, read_file, write_file
from headrace.formats.format import Format
from headrace.formats.shapes import STRICT, Amount, Name, read_shape, shorten
from headrace.model.bound import Bound, bound_name
from headrace.model.errors import BadPlan, HeadraceError
from headrace.model.graph import Floats, Graph, Ints
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.units import plural
from headrace.model.usage import usage_of_plan

FORMAT = "headrace-plan-1"
_MARK = re.compile(rb'"format"\s*:\s*"headrace-plan')


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """A plan as plain values, tasks and transfers by start time; cost and energy if hosts have prices or watts."""
    return {
        "format": FORMAT,
        "scheduler": plan.scheduler,
        "program": plan.graph.name,
        "platform": plan.platform.name,
        "makespan": plan.makespan,
        "bound": float(plan.bound),
        "bound_name": bound_name(plan.bound),
        "seconds": float(plan.seconds),
        "notes": list(plan.notes),
        **({"in_turn": True} if plan.in_turn else {}),
        "tasks": [task._asdict() for task in plan.tasks()],
        "transfers": [
            {"data": m.data, "from": m.source, "to": m.target, "start": m.start, "finish": m.finish}
            for m in plan.transfers()
        ],
    } | usage_of_plan(plan).facts()


def write_plan(
    plan: Plan, path: str | Path, *, made_from: tuple[str, str] | None = None, rules_file: str | None = None
) -> None:
    """Write a plan that `read_plan` reads back; `made_from` names its program and platform files."""
    document = plan_to_dict(plan)
    if made_from is not None:
        document |= {"program_file": made_from[0], "platform_file": made_from[1]}
    if rules_file is not None:
        document |= {"rules_file": rules_file}
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    write_file(path, encode_text(text + "\n", str(path)))


def read_plan(path: str | Path, graph: Graph, platform: Platform) -> Plan:
    """Read a plan of this program on this platform: O(tasks log tasks + transfers).

    Every name must exist and every task must appear once. If any task of a host has no `core`, all tasks of that
    host are assigned cores, in order of start time, the lowest free core first. Whether the plan is valid is not
    checked here.
    """
    return plan_from_bytes(read_file(path), graph, platform, str(path))


def plan_from_bytes(content: bytes, graph: Graph, platform: Platform, where: str) -> Plan:
    """Like `read_plan`, of the contents of a file."""
    document = read_shape(_adapter(), content, where)
    try:
        return _plan(document, graph, platform)
    except HeadraceError as error:
        raise error.at(where) from None


def files_of_plan(path: str | Path) -> tuple[str | None, str | None]:
    """The program and platform files that a plan says it was made from."""
    document = read_shape(_adapter(), read_file(path), str(path))
    return document.program_file, document.platform_file


def rules_file_of_plan(path: str | Path) -> str | None:
    """The rule file that a plan says it was made with."""
    return read_shape(_adapter(), read_file(path), str(path)).rules_file


@dataclass(slots=True)
class _Task:
    id: Name
    host: Name
    start: Amount
    finish: Amount
    core: Annotated[int, Field(ge=0, lt=2**31)] | None = None


@dataclass(slots=True)
class _Transfer:
    data: Name
    source: Annotated[Name, Field(alias="from")]
    target: Annotated[Name, Field(alias="to")]
    start: Amount
    finish: Amount


@dataclass(slots=True)
class _Document:
    __pydantic_config__ = STRICT  # holds for the parts too

    format: Literal["headrace-plan-1"]
    tasks: Annotated[list[_Task], FailFast()]
    transfers: Annotated[list[_Transfer], FailFast()] = field(default_factory=list)
    scheduler: str = "unknown"
    bound: Amount = 0.0
    bound_name: str = ""
    seconds: Amount = 0.0
    notes: Annotated[list[str], FailFast()] = field(default_factory=list)
    in_turn: bool = False
    program_file: Name | None = None
    platform_file: Name | None = None
    rules_file: Name | None = None


@cache
def _adapter() -> TypeAdapter[_Document]:
    return TypeAdapter(_Document)


def _plan(document: _Document, graph: Graph, platform: Platform) -> Plan:
    items = _Names("data item", graph.item_names, f"program {graph.name!r}")
    places = _Names("place", platform.network.place_names, f"platform {platform.name!r}")
    moves = document.transfers
    times = [_times(row, f"transfers[{i}]") for i, row in enumerate(moves)]
    return Plan(
        graph=graph,
        platform=platform,
        scheduler=document.scheduler,
        **_placed(document.tasks, graph, platform),
        move_item=_ints([items.number(m.data, f"transfers[{i}].data") for i, m in enumerate(moves)]),
        move_source=_ints([places.number(m.source, f"transfers[{i}].from") for i, m in enumerate(moves)]),
        move_target=_ints([places.number(m.target, f"transfers[{i}].to") for i, m in enumerate(moves)]),
        move_start=np.array([s for s, _ in times], np.float64),
        move_finish=np.array([f for _, f in times], np.float64),
        bound=Bound(document.bound, document.bound_name),
        seconds=document.seconds,
        notes=tuple(document.notes),
        in_turn=document.in_turn,
    )


def _placed(rows: list[_Task], graph: Graph, platform: Platform) -> dict[str, Any]:
    """The arrays over tasks: host, core, start, finish."""
    tasks = _Names("task", graph.task_names, f"program {graph.name!r}")
    hosts = _Names("host", [host.name for host in platform.hosts], f"platform {platform.name!r}")
    n = graph.n_tasks
    host = np.full(n, -1, np.int32)
    core = np.full(n, -1, np.int32)
    start, finish = np.zeros(n), np.zeros(n)
    for i, row in enumerate(rows):
        t = tasks.number(row.id, f"tasks[{i}].id")
        if host[t] >= 0:
            raise BadPlan(f"task {shorten(row.id)} appears twice", where=f"tasks[{i}]", hint="remove one")
        host[t] = hosts.number(row.host, f"tasks[{i}].host")
        start[t], finish[t] = _times(row, f"tasks[{i}]")
        if row.core is not None:
            core[t] = _checked_core(row.core, platform, int(host[t]), f"tasks[{i}].core")
    if len(rows) < n:
        missing = graph.task_names[int(np.flatnonzero(host < 0)[0])]
        raise BadPlan(
            f"{plural(n - len(rows), 'task')} missing, such as {shorten(missing)}",
            where="tasks",
            hint="give the program that the plan was made for",
        )
    _assign_cores(host, core, start, finish, graph, platform)
    return {"host": host, "core": core, "start": start, "finish": finish}


class _Names:
    """Indices of names, with an error for unknown names."""

    def __init__(self, what: str, names: Sequence[str], owner: str) -> None:
        self._numbers = {name: i for i, name in enumerate(names)}
        self._what, self._owner = what, owner

    def number(self, name: str, where: str) -> int:
        if name not in self._numbers:
            raise BadPlan(
                f"no such {self._what}: {shorten(name)}",
                where=where,
                hint=f"give the files that the plan was made from; this is {self._owner}",
            )
        return self._numbers[name]


def _ints(values: list[int]) -> Ints:
    return np.array(values, np.int32)


def _times(row: _Task | _Transfer, where: str) -> tuple[float, float]:
    if row.finish < row.start:
        raise BadPlan(
            f"finish {row.finish} is before start {row.start}",
            where=where,
            hint="times are seconds from the start of the run",
        )
    return row.start, row.finish


def _checked_core(core: int, platform: Platform, host: int, where: str) -> int:
    machine = platform.hosts[host]
    if core >= machine.cores:
        raise BadPlan(
            f"no core {core} on host {machine.name!r}, which has {plural(machine.cores, 'core')}",
            where=where,
            hint="cores are numbered from 0; omit core to have one chosen",
        )
    return core


def _assign_cores(
    host: Ints, core: Ints, start: Floats, finish: Floats, graph: Graph, platform: Platform
) -> None:
    """Assign the lowest free core to each task, on hosts where any core is missing.

    O(tasks log tasks).
    """
    todo = np.flatnonzero(np.isin(host, np.unique(host[core < 0])))
    last_host, busy, free, opened = -1, list[tuple[float, int]](), list[int](), 0
    for t in todo[np.lexsort((todo, finish[todo], start[todo], host[todo]))].tolist():
        if host[t] != last_host:
            last_host, busy, free, opened = int(host[t]), [], [], 0
        slack = 1e-9 * max(1.0, float(start[t]))  # planners add times in floating point
        while busy and busy[0][0] <= start[t] + slack:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            free, opened = [opened], opened + 1
        core[t] = heapq.heappop(free)
        heapq.heappush(busy, (float(finish[t]), int(core[t])))
        machine = platform.hosts[last_host]
        if opened > machine.cores:
            raise BadPlan(
                f"task {shorten(graph.task_names[t])} starts at {start[t]} on host {machine.name!r}, "
                f"whose {machine.cores} cores are all busy",
                where="tasks",
                hint="run at most one task per core at a time",
            )


def _is_plan(head: bytes) -> bool:
    return head.startswith(b"{") and _MARK.search(head) is not None


FORMATS = (
    Format(
        "plan",
        "plan",
        "a plan as JSON",
        suffixes=(".plan.json",),
        sniff=_is_plan,
        read=read_plan,
        write=write_plan,
    ),
)
