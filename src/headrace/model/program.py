"""A dataflow program: tasks connected by the named data items that they read and write."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from headrace.model.architecture import arch_speeds
from headrace.model.arguments import as_float, checked_path, short, wrong_argument
from headrace.model.deferred import deferred
from headrace.model.errors import BadProgram, HeadraceError
from headrace.model.graph import Graph
from headrace.model.keyword_call import function_name, require_call, with_keywords
from headrace.model.needs import checked_resources
from headrace.model.program_graph import build_graph
from headrace.model.task_checks import (
    checked_attempts,
    checked_cores,
    checked_labels,
    checked_names,
    checked_text,
    checked_words,
    require_program,
    text_as_command,
)
from headrace.model.units import plural, quantity, show_size

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Command:
    """An external program with its arguments, started without a shell.

    `{name}` in an argument is replaced by the file of the input or output item of that name. `stdout` names the output
    item that receives the program's standard output.
    """

    argv: tuple[str, ...]
    stdout: str | None = None
    literal: bool = False
    """Whether arguments name files as they are: inputs are in the working folder under the names of their items,
    outputs are expected there, and nothing is replaced."""

    def __post_init__(self) -> None:
        given: object = self.argv
        if isinstance(given, str):
            raise text_as_command(given)
        object.__setattr__(self, "argv", checked_words(given))


@dataclass(frozen=True, slots=True)
class Data:
    """A data item: written by one task, or an input of the program, and read by any number of tasks."""

    name: str
    size: float | None = 0.0
    """Estimated bytes. None: unknown, counted as 1 byte until it is measured. An item of 0 bytes only orders tasks and
    is never transferred."""
    path: str | None = None
    """The file an input is read from, or a result is written to."""
    value: Any = None
    """The value of an input that is not a file."""
    result: bool = False
    """Whether it is a result, to be returned to the platform's origin or to one of `destinations`."""
    initial_locations: tuple[str, ...] = ()
    """Sites or hosts that hold an input when the run starts; empty: the platform's origin."""
    destinations: tuple[str, ...] = ()
    """Sites or hosts, one of which must receive the result; empty: the platform's origin."""

    def __repr__(self) -> str:
        size = "of unknown size" if self.size is None else f"of {show_size(self.size)}"
        path = "" if self.path is None else f" at {self.path!r}"
        return f"<Data {self.name!r}{'' if self.size == 0 else f' {size}'}{path}>"


@dataclass(frozen=True, slots=True)
class Task:
    """A unit of work: a Python callable, a command, or only a run time (`body` is None)."""

    name: str
    work: float
    """Seconds on a host of speed 1."""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    kind: str = ""
    """Tasks of the same kind run the same code: they share run-time history and the kind-specific speeds of hosts."""
    body: Callable[..., Any] | Command | None = None
    after: tuple[str, ...] = ()
    """Tasks that must finish first, in addition to those whose outputs it reads."""
    cores: int = 1
    """Cores of one host that it occupies while it runs."""
    release: float = 0.0
    """Earliest start, in seconds from the start of the run."""
    deadline: float = math.inf
    """Latest time by which it has finished and its results have been delivered."""
    arch_speeds: tuple[float, ...] = ()
    """Its speed on each architecture, relative to the first; empty: the same on all."""
    labels: Mapping[str, str | float] = field(default_factory=dict)
    """Labels chosen by the user; rules can select tasks by them."""
    timeout: float | None = None
    """In a real run: seconds that one attempt may take; None: as the run says."""
    retries: int | None = None
    """In a real run: how often it is tried again after a failure; None: as the run says."""
    memory: float = 0.0
    """Bytes of its host's memory that it needs while it runs; 0: not known."""
    resources: Mapping[str, int] = field(default_factory=dict)
    """How many of each named resource of its host, such as GPUs, it needs while it runs."""


class Program:
    """A program: tasks, and the data items that they read and write. Dependencies follow from the items' names.

    >>> program = Program("edges")
    >>> image = program.input("image", size="3 MB")
    >>> edges = program.task(abs, inputs=[image], outputs={"edges": "1 MB"}, work=2.0, name="sobel")
    >>> thin = program.task(abs, inputs=[edges], outputs=["thin"], work=1.0)
    >>> program.output(thin, "thin.png")
    >>> program.graph.n_tasks, [d.name for d in program.results()]
    (2, ['thin'])
    """

    def __init__(self, name: str = "program") -> None:
        if not isinstance(name, str):
            raise wrong_argument("argument name", name, 'give a text, such as Program("mosaic")')
        self.name = name
        self.tasks: dict[str, Task] = {}
        self.data: dict[str, Data] = {}
        self.producer: dict[str, str] = {}
        """The task that writes each item. Inputs of the program are not listed."""
        self._reality: Graph | None = None
        self._graph: Graph | None = None

    def input(
        self,
        name: str,
        path: str | Path | None = None,
        *,
        size: float | str | None = 0.0,
        value: Any = None,
        sites: Iterable[str] = (),
    ) -> Data:
        """Add an input of the program.

        Args:
            name: Name of the item.
            path: File to read it from.
            size: Its size in bytes or as text ("3 MB"), for planning; None: unknown.
            value: Its value, if it is not a file.
            sites: Sites that hold a copy when the run starts, instead of the platform's origin.

        Raises:
            BadProgram: The name is in use, the size is not a size, or there are a path and a value.
        """
        if path is not None and value is not None:
            raise BadProgram(
                f"item {name!r} has a path and a value", where=self.name, hint="give the one or the other"
            )
        item = Data(
            checked_text(name, "name", self.name),
            _checked_size(size, name),
            path=self._checked_path(path, name, f"give the name of a file, or write value={short(path)}"),
            value=value,
            initial_locations=checked_names(sites, "sites", f"item {name!r}"),
        )
        self._require_new(item)
        self.data[name] = item
        self._graph = None
        return item

    def task(
        self,
        body: Callable[..., Any] | Command | Sequence[str] | None = None,
        *,
        inputs: Iterable[Data | str] = (),
        outputs: Iterable[str] | Mapping[str, float | str | None] = (),
        work: float | str | Sequence[float | str] = 1.0,
        name: str | None = None,
        kind: str | None = None,
        after: Iterable[str] = (),
        stdout: str | None = None,
        cores: int = 1,
        release: float | str = 0.0,
        deadline: float | str = math.inf,
        labels: Mapping[str, str | float] | None = None,
        timeout: float | str | None = None,
        retries: int | None = None,
        memory: float | str = 0.0,
        resources: Mapping[str, int] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Add a task.

        Args:
            body: A callable, which receives its inputs as positional arguments and returns its output, or a tuple of
                several outputs; a command, as a list of strings; None: a task that is only planned and simulated.
            inputs: Items that it reads, in order.
            kwargs: Keyword arguments of a callable: an item is read like the inputs, any other value is a constant.
            outputs: Names of the items that it writes, optionally with estimated sizes; None: unknown.
            work: Run time on a host of speed 1, or a list with one run time for each architecture.
            name: Unique name; by default the kind and a number.
            kind: Tasks of one kind share history; by default the name of the function or command.
            after: Tasks that must finish first.
            stdout: For a command, the output item that receives its standard output.
            cores: Cores of one host that it occupies.
            release: Earliest start.
            deadline: Latest finish.
            labels: Text or number for each label name; rules can select tasks by labels.
            timeout: In a real run, how long one attempt may take; by default as the run says.
            retries: In a real run, how often it is tried again after a failure; by default as the run says.
            memory: How much of its host's memory it needs while it runs; 0: not known. Tasks that run on a host at the
                same time never need more together than it has.
            resources: Likewise, how many of each named resource of its host it needs, such as `{"gpu": 1}`.

        Returns:
            Its output item, or a tuple of them if there are several. A task without outputs returns an empty item that
            other tasks can list among their inputs to wait for it.

        Raises:
            BadProgram: A name is in use, an item has two producers, a value is invalid, or the function cannot be
                called with these inputs and keyword arguments. Arguments that are missing are noticed when the
                program runs: an experiment may still set them.

        >>> program = Program()
        >>> x = program.input("x", value=3.14159)
        >>> short = program.task(round, inputs=[x], kwargs={"ndigits": 2}, outputs=["short"])
        >>> program.tasks["round_0"].body(3.14159)
        3.14
        """
        command = _body_of(body, stdout, self.name)
        if kind is None:
            kind = _kind_of(command)
        elif kind:
            checked_text(kind, "kind", self.name)
        if name is None:
            name = self._free_name(kind or "task")
        if checked_text(name, "name", self.name) in self.tasks:
            raise BadProgram(
                f"two tasks are named {name!r}", where=self.name, hint="give each task its own name"
            )
        where = f"{self.name}: task {name!r}"
        sizes: dict[str, float | str | None] = dict.fromkeys(checked_names(outputs, "outputs", where), 0.0)
        if isinstance(outputs, Mapping):
            sizes.update(outputs)
        if not sizes:
            sizes = {f"{name}.done": 0.0}
        try:
            seconds, speeds = _work_and_speeds(work)
            earliest = quantity(release, "time")
            latest = math.inf if as_float(deadline) == math.inf else quantity(deadline, "time")
            allowed = None if timeout is None else quantity(timeout, "time")
            needed = quantity(memory, "size")
        except HeadraceError as error:
            raise BadProgram(error.problem, where=where, hint=error.hint) from None
        made = [Data(out, _checked_size(size, out)) for out, size in sizes.items()]
        for item in made:
            if item.name in self.producer:
                raise BadProgram(
                    f"item {item.name!r} is written by {self.producer[item.name]!r} and by {name!r}",
                    where=self.name,
                    hint="one item has one producer: give the second output another name",
                )
            self._require_new(item)
        read = _items(inputs, where)
        if kwargs:
            command, named = _with_kwargs(command, kwargs, len(read), where)
            read += named
        if command is not None and not isinstance(command, Command):
            require_call(command, len(read), where, complete=False)
        task = Task(
            name, seconds, read, tuple(sizes), kind, command, checked_names(after, "after", where),
            checked_cores(cores, where), earliest, latest, speeds,
            checked_labels({} if labels is None else labels, where), *checked_attempts(allowed, retries, where), needed,
            checked_resources({} if resources is None else resources, where, BadProgram),
        )  # fmt: skip
        # Nothing is refused from here on: a program that refuses a task is as it was before.
        for item in made:
            self.data[item.name] = item
            self.producer[item.name] = name
        self.tasks[name] = task
        self._graph = None
        return made[0] if len(made) == 1 else tuple(made)

    def output(self, item: Data | str, path: str | Path | None = None, *, sites: Iterable[str] = ()) -> None:
        """Declare an item a result of the program.

        Args:
            item: An item, or its name.
            path: File to write it to.
            sites: Deliver it to one of these sites instead of the platform's origin.

        Raises:
            BadProgram: There is no such item, or `sites` are given for an input.
        """
        name = item.name if isinstance(item, Data) else item
        if name not in self.data:
            raise BadProgram(f"there is no item {name!r}", where=self.name, hint="declare it first")
        destinations = checked_names(sites, "sites", f"item {name!r}")
        if destinations and name not in self.producer:
            raise BadProgram(
                f"item {name!r} comes from outside and cannot be sent to {destinations[0]!r}",
                where=self.name,
                hint="give destinations to what tasks make",
            )
        path = self._checked_path(path, name, "give the name of a file")
        self.data[name] = replace(self.data[name], path=path, result=True, destinations=destinations)
        self._graph = None

    def _checked_path(self, path: object, item: str, hint: str) -> str | None:
        if path is None or isinstance(path, str | os.PathLike):
            return None if path is None else str(path)
        raise BadProgram(f"the path of item {item!r} is {short(path)}", where=self.name, hint=hint)

    def inputs(self) -> list[Data]:
        """The inputs of the program."""
        return [d for d in self.data.values() if d.name not in self.producer]

    def results(self) -> list[Data]:
        """The results: the items declared by `output`, or, if there are none, all outputs that no task reads."""
        declared = [d for d in self.data.values() if d.result]
        if declared:
            return declared
        read = {name for task in self.tasks.values() for name in task.inputs}
        return [d for d in self.data.values() if d.name in self.producer and d.name not in read]

    @property
    def graph(self) -> Graph:
        """The program as arrays; validated and built on first use.

        With a `reality`, an item with an estimated size of 0 but real bytes has an unknown size, and an item that is
        really empty is never transferred, whatever its estimate.

        Raises:
            BadProgram: Tasks depend on each other in a cycle, or an item or task does not exist.
        """
        if self._graph is None:
            built = build_graph(self)
            self._graph = built if self._reality is None else built.moving_as(self._reality)
        return self._graph

    @property
    def reality(self) -> Graph | None:
        """The same graph with real run times and sizes, if they differ from the estimates in `tasks` and `data`.

        Simulators use it; schedulers never see it."""
        return self._reality

    @reality.setter
    def reality(self, real: Graph | None) -> None:
        self._reality = real
        self._graph = None

    @property
    def real(self) -> Graph:
        """The graph that a simulator executes: `reality`, or the estimates if there is none."""
        return self.graph if self.reality is None else self.reality

    @staticmethod
    def read(path: str | Path, *, commands: bool = False) -> Program:
        """Read a program from a file in any format that Headrace knows, or from `file.py:name`.

        A Python file is executed. With `commands`, so are the commands of a WfFormat file when the program runs. Use
        either only on files that you trust.
        """
        program: Program = deferred("load_program")(checked_path(path), commands=commands)
        return program

    def write(self, path: str | Path, format: str | None = None) -> None:
        """Write the program to a file, in the format that its suffix selects: WfFormat (.json), GraphML, DOT, ...

        A name that ends in `.gz` as well is packed.
        Functions cannot be written: a program that is read back can be planned and simulated.
        """
        deferred("write_program_as")(self, checked_path(path), format)

    @staticmethod
    def from_networkx(graph: Any, name: str | None = None) -> Program:
        """A program from a directed acyclic `networkx` graph: nodes are tasks, edges are data.

        Nodes may have the attributes `work` (or `weight`), `kind`, `cores`, `memory`, `release` and `deadline`; edges
        `bytes` (or `size`, `weight`) and `data`, the names of the items, where several edges carry the same item.
        """
        program: Program = deferred("program_from_networkx")(graph, name)
        return program

    def to_networkx(self) -> Any:
        """The program as a `networkx.DiGraph`: the opposite of `from_networkx`.

        Attributes of edges are lists, which GraphML does not have: to write that, use `program.write("x.graphml")`
        instead of `networkx.write_graphml`.
        """
        return deferred("program_to_networkx")(self)

    @staticmethod
    def from_dask(collection: Any, name: str = "dask") -> Program:
        """A program from a Dask collection (delayed, array, data frame, bag); its result is what `compute` returns."""
        program: Program = deferred("program_from_dask")(collection, name)
        return program

    def to_dask(self) -> dict[str, Any]:
        """The results as Dask's delayed objects, by name; for programs of functions that read and return values."""
        results: dict[str, Any] = deferred("program_to_dask")(self)
        return results

    def __repr__(self) -> str:
        return f"<Program {self.name!r}: {plural(len(self.tasks), 'task')}, {plural(len(self.data), 'item')}>"

    def _repr_html_(self) -> str:
        html: str = deferred("program_html")(self)
        return html

    def _require_new(self, item: Data) -> None:
        if item.name in self.data:
            raise BadProgram(
                f"two items are named {item.name!r}", where=self.name, hint="give each item its own name"
            )

    def _free_name(self, stem: str) -> str:
        number = len(self.tasks)
        while f"{stem}_{number}" in self.tasks:
            number += 1
        return f"{stem}_{number}"


def _body_of(body: Any, stdout: str | None, where: str) -> Callable[..., Any] | Command | None:
    if isinstance(body, str):
        raise text_as_command(body, where)
    if body is None:
        return None
    if callable(body):
        function: Callable[..., Any] = body
        return function
    command = body if isinstance(body, Command) else Command(checked_words(body, where), stdout)
    require_program(command.argv, where)
    return command


def _items(inputs: Iterable[Data | str], where: str) -> tuple[str, ...]:
    """The names of items that a task reads."""
    if isinstance(inputs, str | Data):
        shown = repr(inputs) if isinstance(inputs, str) else inputs.name
        raise BadProgram(f"inputs is a single item, {shown}", where=where, hint=f"write inputs=[{shown}]")
    if isinstance(inputs, Mapping):
        name = next(iter(inputs), "name")
        raise BadProgram(
            f"inputs is {short(inputs)}, which does not list items",
            where=where,
            hint=f"write kwargs={{{name!r}: item}} for keyword arguments, or inputs=[item] for positional ones",
        )
    if not isinstance(inputs, Iterable):
        raise BadProgram(f"inputs is {inputs!r}", where=where, hint="give a list of items")
    read = tuple(item.name if isinstance(item, Data) else item for item in inputs)
    for position, item in enumerate(read):
        if not isinstance(item, str):
            raise BadProgram(
                f"input {position} is {short(item)}, which is not an item",
                where=where,
                hint='give constants by name, such as kwargs={"width": 3}, or bind them with functools.partial',
            )
    return read


def _with_kwargs(
    body: Callable[..., Any] | Command | None, kwargs: Mapping[str, Any], positional: int, where: str
) -> tuple[Callable[..., Any], tuple[str, ...]]:
    """The function with its keyword arguments, and the items among them."""
    if body is None or isinstance(body, Command):
        raise BadProgram(
            "kwargs are the keyword arguments of a function",
            where=where,
            hint="add them to the command" if body is not None else "give the task a function",
        )
    if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
        hint = 'give names and values, such as {"width": 3}'
        raise BadProgram(f"kwargs is {short(kwargs)}", where=where, hint=hint)
    items = {name: value.name for name, value in kwargs.items() if isinstance(value, Data)}
    constants = {name: value for name, value in kwargs.items() if name not in items}
    return with_keywords(body, constants, list(items), positional), tuple(items.values())


def _kind_of(body: Callable[..., Any] | Command | None) -> str:
    if body is None:
        return ""
    if isinstance(body, Command):
        return body.argv[0] if body.argv else "command"
    return function_name(body)


def _work_and_speeds(work: float | str | Sequence[float | str]) -> tuple[float, tuple[float, ...]]:
    """Seconds on a host of speed 1 and architecture 0, and the speed on each architecture if they are given."""
    if isinstance(work, Sequence) and not isinstance(work, str | bytes | bytearray | memoryview):
        return arch_speeds([quantity(each, "time") for each in work])
    return quantity(work, "time"), ()


def _checked_size(size: float | str | None, name: str) -> float | None:
    if size is None:
        return None
    try:
        return quantity(size, "size")
    except HeadraceError as error:
        raise BadProgram(error.problem, where=f"item {name!r}", hint=error.hint) from None
