"""A graph of the engine that is known by its name."""

from __future__ import annotations

from typing import Any

from dask.tokenize import normalize_token


class UniqueGraph(dict[Any, Any]):
    """A graph of the engine with keys that no other graph has.

    The engine names a graph after a hash of everything in it, which takes as long as sending it. This one has a name.

    >>> from dask.tokenize import tokenize
    >>> graph = UniqueGraph("run-7")
    >>> graph["key"] = object()  # could not be hashed
    >>> tokenize(graph) == tokenize(UniqueGraph("run-7"))
    True
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return UniqueGraph, (self.name,), None, None, iter(self.items())


@normalize_token.register(UniqueGraph)  # type: ignore[untyped-decorator]
def _name_of(graph: UniqueGraph) -> tuple[str, str]:
    return "headrace graph", graph.name
