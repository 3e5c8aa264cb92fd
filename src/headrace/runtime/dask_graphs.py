"""Programs from and to graphs of Dask; dask is imported on first use."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from headrace.model.arguments import wrong_argument
from headrace.model.errors import BadProgram, TaskFailed, UsageError
from headrace.model.program import Command, Program, Task


class NodeCall:
    """A node of a Dask graph as a function of the values of the keys that it reads, in order.

    Not a dataclass: Dask would look into it for keys.
    """

    def __init__(self, node: Any, reads: tuple[Any, ...]) -> None:
        self.node = node
        self.reads = reads

    def __call__(self, *values: Any) -> Any:
        return self.node(dict(zip(self.reads, values, strict=True)))


class TaskCall:
    """A task's function as Dask calls it: there must be a value for each output.

    Not a dataclass, as `NodeCall`.
    """

    def __init__(self, task: Task) -> None:
        self.task = task.name
        self.body: Any = task.body
        self.outputs = len(task.outputs)

    def __call__(self, *values: Any) -> Any:
        made = self.body(*values)
        if self.outputs == 1 or (isinstance(made, tuple | list) and len(made) == self.outputs):
            return made
        # As `runtime.bodies` says in a real run.
        got = f"{len(made)} values" if isinstance(made, tuple | list) else f"one {type(made).__name__}"
        raise TaskFailed(
            f"it returned {got}, but has {self.outputs} outputs",
            where=f"task {self.task!r}",
            hint=f"return a tuple of {self.outputs} values",
        )


def program_from_dask(collection: Any, name: str = "dask") -> Program:
    """The program of a Dask collection: a task for each key, whose kind is the key's prefix.

    The result is what `collection.compute()` returns. Graphs are optimized as Dask does before it computes them.
    `dask.annotate(resources={"GPU": 1, "MEMORY": 2e9})` becomes what tasks need of their hosts; other annotations are
    ignored. Persisted data and futures that the collection uses become inputs: their values are fetched.
    """
    from dask._task_spec import Alias, DataNode
    from dask.core import toposort
    from dask.utils import key_split

    graph, wanted, needs = _graph_of(collection)
    reads = {key: tuple(sorted(node.dependencies, key=str)) for key, node in graph.items()}
    names = _names(graph)
    program = Program(name)
    items: dict[Any, Any] = _fetched(program, {read for of in reads.values() for read in of} - set(graph))
    for key in toposort({key: [read for read in of if read in graph] for key, of in reads.items()}):
        node = graph[key]
        if isinstance(node, Alias):
            items[key] = items[node.target]
        elif isinstance(node, DataNode):
            items[key] = program.input(names[key], value=node.value)
        else:
            body = NodeCall(node, reads[key])
            given = [items[read] for read in reads[key]]
            # The same item under two keys is passed once, and two values are expected.
            if len(set(map(str, given))) < len(given):
                given = [_copied(program, items, read, names) for read in reads[key]]
            resources = dict(needs.get(key, {}))
            memory = sum(resources.pop(word) for word in ("MEMORY", "memory") if word in resources)
            items[key] = program.task(
                body,
                inputs=given,
                outputs={names[key]: None},
                name=names[key],
                kind=key_split(key),
                memory=memory,
                resources=resources,
            )
    program.output(items[wanted])
    return program


def _fetched(program: Program, keys: AbstractSet[Any]) -> dict[Any, Any]:
    """Inputs for the keys that are not in the graph, with their values: futures of the current client."""
    if not keys:
        return {}
    from distributed import Future, default_client

    ordered = sorted(keys, key=str)
    try:
        client = default_client()
    except ValueError:  # there is none
        client = None
    for key in ordered:
        if client is None or key not in client.futures:
            raise UsageError(
                f"{str(key)!r} is a future or persisted data, and the current client does not hold it",
                where=program.name,
                hint="keep the client that computed it open, and make it the current one: with client.as_current()",
            )
    values = client.gather([Future(key, client) for key in ordered])
    return {key: program.input(str(key), value=value) for key, value in zip(ordered, values, strict=True)}


def _copied(program: Program, items: Mapping[Any, Any], read: Any, names: Mapping[Any, str]) -> Any:
    return program.task(_same, inputs=[items[read]], outputs={f"{names[read]} again": None}, kind="alias")


def _same(value: Any) -> Any:
    return value


def _graph_of(collection: Any) -> tuple[dict[Any, Any], Any, Mapping[Any, Mapping[str, Any]]]:
    """The optimized graph, the key of its result, and the resources with which keys are annotated."""
    import dask
    from dask._expr import FinalizeCompute
    from dask._task_spec import convert_legacy_graph
    from dask.base import collections_to_expr, is_dask_collection
    from dask.core import flatten

    if not is_dask_collection(collection):
        hint = "give a delayed object, an array, a data frame or a bag; futures are computed already"
        if isinstance(collection, list | tuple | dict):
            hint = "for several results, give dask.delayed([one, another])"
        raise wrong_argument("Dask collection", collection, hint)
    with dask.config.set({"dataframe.shuffle.method": "tasks"}):  # where the collection leaves the choice
        expression = FinalizeCompute(collections_to_expr([collection])).optimize()
        graph = convert_legacy_graph(dict(expression.__dask_graph__()))
    _refuse_peer_to_peer(graph)
    (wanted,) = flatten(expression.__dask_keys__())
    return graph, wanted, expression.__dask_annotations__().get("resources", {})


def _refuse_peer_to_peer(graph: Mapping[Any, Any]) -> None:
    """Tasks of P2P shuffles exchange data beside the graph, and only under the keys that Dask gave them."""
    for key, node in graph.items():
        if type(node).__module__.startswith("distributed.shuffle"):
            raise UsageError(
                f"{str(key)!r} belongs to a P2P shuffle, which exchanges data outside the graph",
                where="from_dask",
                hint='choose method="tasks" of `rechunk` or shuffle_method="tasks" of `shuffle`, '
                "or set array.rechunk.method of dask.config to tasks",
            )


def _names(graph: Mapping[Any, Any]) -> dict[Any, str]:
    names = {key: key if isinstance(key, str) else str(key) for key in graph}
    if len(set(names.values())) < len(names):
        raise BadProgram("two keys of the graph are the same as text", hint="rename one of them")
    return names


def program_to_dask(program: Program) -> dict[str, Any]:
    """The results of a program as Dask's delayed objects, by name: the tasks become a Dask graph."""
    from dask.delayed import delayed

    made: dict[str, Any] = {}
    for item in program.inputs():
        if item.path is not None:
            raise BadProgram(
                f"input {item.name!r} is a file",
                where=program.name,
                hint="read it in a task, or give its value",
            )
        made[item.name] = delayed(item.value, name=f"{item.name}-{_token(program, item.name)}")
    graph = program.graph
    for number in sorted(range(graph.n_tasks), key=lambda t: (int(graph.level[t]), t)):
        task = program.tasks[graph.task_names[number]]
        _require_function(program, task)
        token = _token(program, task.name)
        body = TaskCall(task)
        call = delayed(body, name=f"{task.name}-{token}", pure=True, nout=len(task.outputs), traverse=False)
        out = call(*[made[name] for name in task.inputs], dask_key_name=f"{task.kind or task.name}-{token}")
        parts = [out] if len(task.outputs) == 1 else list(out)
        made.update(zip(task.outputs, parts, strict=True))
    return {item.name: made[item.name] for item in program.results()}


def _token(program: Program, name: str) -> str:
    from dask.base import tokenize

    return str(tokenize(program.name, name))


def _require_function(program: Program, task: Task) -> None:
    problem = None
    if task.body is None:
        problem = "has nothing to execute"
    elif isinstance(task.body, Command):
        problem = "is a command"
    elif task.after:
        problem = "comes after others without reading from them"
    if problem is not None or not task.outputs:
        raise BadProgram(
            f"task {task.name!r} {problem or 'has no outputs'}",
            where=program.name,
            hint="give functions that read and return values; hr.run(on=client) runs any program",
        )
