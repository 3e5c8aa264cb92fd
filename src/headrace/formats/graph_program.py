"""Programs from graphs of tasks, as graph tools hold them: nodes are tasks, edges the data between them.

Attributes of nodes: `work` (or `runtime`, `duration`, `weight`; default 1 s), `kind` (or `category`), `cores`,
`memory`, `resources` (such as `gpu=1`), `release`, `deadline`. Attributes of edges: `bytes` (or `size`, `weight`;
default 0: only an order), `data`, the names of the items, and `sizes`, their sizes. Quantities may be texts with units.
A size of `?`, or None in a list, is unknown.
In a text, `data` and `sizes` have a line for each item; names that contain line breaks are a JSON list.
Other attributes are ignored.

An item that several edges name is one item, read by several tasks. Where an edge has several items and only their sum,
what is left of it is divided equally among those whose size no other edge tells.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

from headrace.formats.resource_text import read_resources, write_resources
from headrace.formats.shapes import MAX_NUMBER, shorten
from headrace.formats.task_edges import task_edges
from headrace.model.errors import BadProgram, HeadraceError
from headrace.model.needs import checked_resources
from headrace.model.program import Program
from headrace.model.units import quantity

MAX_TASKS = 5_000_000
WORK = ("work", "runtime", "duration", "weight")
KIND = ("kind", "category")
BYTES = ("bytes", "size", "weight")
UNKNOWN = "?"
"""An unknown size, as in tables of jobs."""
READ = frozenset(
    (*WORK, *KIND, *BYTES, "cores", "memory", "resources", "release", "deadline", "data", "sizes")
)
"""All attributes that are read."""

Attributes: TypeAlias = Mapping[str, Any]


class GraphNode(NamedTuple):
    """A task."""

    id: str
    attributes: Attributes


class GraphEdge(NamedTuple):
    """What one task passes to another."""

    source: str
    target: str
    attributes: Attributes


def program_of_graph(name: str, nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]) -> Program:
    """The program of a graph: O(nodes + edges + items).

    >>> nodes = [GraphNode("a", {"work": "2 s"}), GraphNode("b", {})]
    >>> program = program_of_graph("two", nodes, [GraphEdge("a", "b", {"bytes": 5})])
    >>> program.tasks["b"].inputs, program.data["a -> b"].size
    (('a -> b',), 5.0)

    Raises
    ------
    BadProgram
        If names repeat or are unknown, a quantity is not one, or tasks depend on each other in a cycle.
    """
    if len(nodes) > MAX_TASKS:
        raise BadProgram(f"{len(nodes)} tasks, more than {MAX_TASKS}", hint="split the program")
    known = {node.id for node in nodes}
    items = _Items(known)
    reads: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    for edge in edges:
        names = items.add(edge)
        reads.setdefault(edge.target, []).extend(names)
        if not names:
            after.setdefault(edge.target, []).append(edge.source)
    items.settle()
    program = Program(name)
    for node in nodes:
        program.task(
            None,
            name=node.id,
            inputs=list(dict.fromkeys(reads.get(node.id, ()))),
            outputs={item: items.size[item] for item in items.written.get(node.id, ())},
            after=list(dict.fromkeys(after.get(node.id, ()))),
            **_task_values(node),
        )
    _ = program.graph  # finds cycles
    return program


class _Items:
    """The items that edges name, with their producers and sizes."""

    def __init__(self, tasks: set[str]) -> None:
        self.tasks = tasks
        self.producer: dict[str, str] = {}
        self.written: dict[str, list[str]] = {}
        self.size: dict[str, float | None] = {}
        """None: unknown. NaN: no edge has told it yet."""
        self._open: list[tuple[list[str], float]] = []
        """Items of one edge, and the sum of their sizes."""

    def add(self, edge: GraphEdge) -> list[str]:
        """The items of an edge; none if it is only an order."""
        for end in (edge.source, edge.target):
            if end not in self.tasks:
                raise BadProgram(
                    f"an edge names the task {shorten(end)}, which is not there", hint="add a node for it"
                )
        where = f"edge {shorten(edge.source)} -> {shorten(edge.target)}"
        unknown = _size_is_unknown(edge.attributes)
        total = None if unknown else _number(edge.attributes, BYTES, "size", where)
        names = _names(edge.attributes.get("data"), where)
        if not names and not total and not unknown:
            return []
        names = names or [self._own_name(edge)]
        for name in names:
            if self.producer.setdefault(name, edge.source) != edge.source:
                raise BadProgram(
                    f"item {shorten(name)} comes from {shorten(self.producer[name])} and from "
                    f"{shorten(edge.source)}",
                    where=where,
                    hint="one item has one producer: give the other another name",
                )
            if name not in self.size:
                self.size[name] = math.nan
                self.written.setdefault(edge.source, []).append(name)
        sizes = _sizes(edge.attributes.get("sizes"), len(names), where)
        if sizes is None and (unknown or len(names) == 1):
            sizes = [None if unknown else total or 0.0] * len(names)
        if sizes is None:
            self._open.append((names, total or 0.0))
        else:
            self.size.update(zip(names, sizes, strict=True))
        return names

    def settle(self) -> None:
        """Sizes of items of which only sums are known."""
        for names, total in self._open:
            known = {name: self.size[name] or 0.0 for name in names}
            untold = [name for name, size in known.items() if math.isnan(size)]
            rest = max(0.0, total - sum(size for size in known.values() if not math.isnan(size)))
            self.size.update({name: rest / len(untold) for name in untold})

    def _own_name(self, edge: GraphEdge) -> str:
        name = f"{edge.source} -> {edge.target}"
        while name in self.producer:  # parallel edges
            name += "'"
        return name


def _task_values(node: GraphNode) -> dict[str, Any]:
    where = f"node {shorten(node.id)}"
    work = _number(node.attributes, WORK, "time", where)
    values: dict[str, Any] = {"work": 1.0 if work is None else work, "kind": _text(node.attributes, KIND)}
    for name, what in (("memory", "size"), ("release", "time"), ("deadline", "time")):
        found = _number(node.attributes, (name,), what, where)
        if found is not None:
            values[name] = found
    cores = _number(node.attributes, ("cores",), "number", where)
    if cores is not None:
        if cores < 1 or cores > 1e6 or not float(cores).is_integer():
            raise BadProgram(f"cores is {cores:g}", where=where, hint="give a whole number of 1 or more")
        values["cores"] = int(cores)
    resources = node.attributes.get("resources")
    if resources is not None:
        given = read_resources(resources, where) if isinstance(resources, str) else resources
        values["resources"] = checked_resources(given, where, BadProgram)
    return values


def _number(attributes: Attributes, names: Iterable[str], what: str, where: str) -> float | None:
    """The first of these attributes as a number; a text may have a unit."""
    for name in names:
        value: Any = attributes.get(name)
        if _missing(value):
            continue
        try:
            if getattr(value, "ndim", 0):  # of one element, it would pass for a number
                raise TypeError
            if what == "number":
                found = float(value)
            else:
                found = quantity(value if isinstance(value, str) else float(value), what)
        except (TypeError, ValueError, OverflowError):
            raise BadProgram(f"{name} is {shorten(value)}", where=where, hint=f"give a {what}") from None
        except HeadraceError as error:
            raise BadProgram(error.problem, where=where, hint=error.hint) from None
        if not 0 <= found <= MAX_NUMBER:
            raise BadProgram(f"{name} is {found:g}", where=where, hint="give a number from 0 to 1e18")
        return found
    return None


def _text(attributes: Attributes, names: Iterable[str]) -> str:
    return next((str(attributes[name]) for name in names if attributes.get(name) is not None), "")


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value)  # arrays compare their elements


def _names(value: Any, where: str) -> list[str]:
    """Names of items: a list, or a text with one in each line."""
    if _missing(value):
        return []
    found = _split(value) if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not all(isinstance(each, str) and each for each in found):
        raise BadProgram(f"data is {shorten(value)}", where=where, hint="give names of items")
    return list(dict.fromkeys(found))


def _split(text: str) -> list[str]:
    r"""
    >>> _split("a\nb"), _split('["a\\nb", "c"]'), _split("[a]")
    (['a', 'b'], ['a\nb', 'c'], ['[a]'])
    """
    if text.startswith("["):
        with suppress(ValueError, RecursionError):
            found = json.loads(text)
            if found and all(isinstance(name, str) for name in found):
                return list(found)
    return text.split("\n")


def _joined(names: list[str]) -> str:
    """Names in a line each, or, if those would not be read as these names, as a JSON list."""
    text = "\n".join(names)
    return text if not names or _split(text) == names else json.dumps(names, ensure_ascii=False)


def _size_is_unknown(attributes: Attributes) -> bool:
    """Whether the size of an edge is `?`; one that is not given is 0."""
    return _is_unknown(next((attributes[name] for name in BYTES if not _missing(attributes.get(name))), 0))


def _is_unknown(size: Any) -> bool:
    return size is None or (isinstance(size, str) and size.strip() == UNKNOWN)


def _sizes(value: Any, count: int, where: str) -> list[float | None] | None:
    if _missing(value):
        return None
    texts = value.split("\n") if isinstance(value, str) else value
    if (
        not isinstance(texts, list | tuple)
        or len(texts) != count
        or any(isinstance(text, str) and not text for text in texts)
    ):
        raise BadProgram(
            f"sizes is {shorten(value)}", where=where, hint=f"give {count} sizes, one for each item"
        )
    return [
        None if _is_unknown(text) else _number({"sizes": text}, ("sizes",), "size", where) for text in texts
    ]


def node_values(program: Program) -> list[GraphNode]:
    """The tasks of a program with their attributes; those that are as usual are left out, but `work` and `kind`."""
    nodes = []
    for task in program.tasks.values():
        values: dict[str, Any] = {"work": task.work, "kind": task.kind}
        values |= {"cores": task.cores} if task.cores > 1 else {}
        values |= {"memory": task.memory} if task.memory else {}
        values |= {"resources": write_resources(task.resources)} if task.resources else {}
        values |= {"release": task.release} if task.release else {}
        values |= {"deadline": task.deadline} if math.isfinite(task.deadline) else {}
        _require_readable(values, f"task {shorten(task.name)}")
        nodes.append(GraphNode(task.name, values))
    return nodes


def edge_values(program: Program) -> list[GraphEdge]:
    """The edges of a program: `bytes`, and lists `data` and `sizes`, in which None is an unknown size."""
    edges = []
    for edge in task_edges(program):
        where = f"edge {shorten(edge.source)} -> {shorten(edge.target)}"
        if "" in edge.data:
            raise BadProgram("the name of an item is ''", where=where, hint="give it a name")
        _require_readable({"bytes": edge.bytes}, where)
        values = {"bytes": edge.bytes, "data": list(edge.data), "sizes": list(edge.sizes)}
        edges.append(GraphEdge(edge.source, edge.target, values))
    return edges


def edge_texts(edge: GraphEdge) -> dict[str, Any]:
    """The attributes of an edge for formats without lists."""
    values = edge.attributes
    sizes = "\n".join(UNKNOWN if size is None else repr(size) for size in values["sizes"])
    return {"bytes": values["bytes"], "data": _joined(values["data"]), "sizes": sizes}


def _require_readable(values: Attributes, where: str) -> None:
    """Refuse to write numbers that would be refused when they are read."""
    for name, value in values.items():
        if not isinstance(value, str) and value > MAX_NUMBER:
            raise BadProgram(f"{name} is {value:g}", where=where, hint="give a number from 0 to 1e18")
