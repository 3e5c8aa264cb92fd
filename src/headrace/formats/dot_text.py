"""Parse untrusted Graphviz DOT: directed graphs with subgraphs, chains of edges and attributes.

HTML labels are refused; ports, styles and other attributes that are not read are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, product

from headrace.formats.graph_program import READ
from headrace.formats.shapes import shorten
from headrace.model.errors import BadFile

MAX_DEPTH = 50
EDGES_OF_SHORT_TEXT = 1_000_000
"""Edges that groups of nodes in a short text may stand for; in a longer one, as many as it has characters."""

_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*)
    |(?P<arrow>->|--)
    |(?P<mark>[{}\[\];,=:+])
    |"(?P<quoted>(?:[^"\\]|\\.)*)"
    |(?P<number>-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?![\w.]))
    |(?P<name>[^\W\d]\w*)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_READ = READ | {"name", "label"}
"""Only these are kept: each node and edge has a copy of its defaults, of which a file may give any number."""
_KEYWORDS = ("node", "edge", "graph", "digraph", "subgraph", "strict")


@dataclass
class DotGraph:
    """The nodes and edges of a file, in the order in which they appear."""

    name: str = ""
    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    edges: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)


def parse_dot(text: str, where: str) -> DotGraph:
    """
    >>> graph = parse_dot('digraph g { a [work=2]; a -> b -> c [bytes="5 MB"] }', "g.dot")
    >>> graph.nodes, graph.edges[1]
    ({'a': {'work': '2'}, 'b': {}, 'c': {}}, ('b', 'c', {'bytes': '5 MB'}))

    Raises
    ------
    BadFile
        If the text is not a directed graph.
    """
    return _Parser(text, where).graph()


class _Parser:
    """One pass over the words of a file; a word is its kind and its text."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where
        self.at = 0
        """Where the current word begins."""
        self.words = self._words()
        self.kind, self.word = "", ""
        self.found = DotGraph()
        self.depth = 0
        self.strict = False
        self.expanded = 0
        """How many edges the statements stand for."""
        self.first: dict[tuple[str, str], dict[str, str]] = {}
        """In a strict graph, the attributes of the edge between two nodes."""
        self.step()

    def _words(self) -> Iterator[tuple[str, str]]:
        place = 0
        while place < len(self.text):
            match = _TOKEN.match(self.text, place)
            self.at = place
            if match is None:
                raise self.wrong(
                    f"{shorten(self.text[place : place + 20])} is not DOT",
                    "put all but plain names and numbers in quotes; see graphviz.org/doc/info/lang.html",
                )
            place = match.end()
            kind = str(match.lastgroup)
            if kind == "quoted":
                yield "id", _ESCAPE.sub(_unescaped, match["quoted"].replace("\\\n", ""))
            elif kind == "name" and match["name"].lower() in _KEYWORDS:
                yield "keyword", match["name"].lower()
            elif kind in ("name", "number"):
                yield "id", match[kind]
            elif kind != "blank":
                yield kind, match[0]
        self.at = len(self.text)
        yield "end", "the end of the file"

    def step(self) -> None:
        self.kind, self.word = next(self.words)

    def wrong(self, problem: str, hint: str = "see graphviz.org/doc/info/lang.html") -> BadFile:
        line = self.text.count("\n", 0, self.at) + 1
        return BadFile(f"line {line}: {problem}", where=self.where, hint=hint)

    def take(self, kind: str, word: str | None = None) -> bool:
        """Go past this word, if it is next."""
        if self.kind != kind or (word is not None and self.word != word):
            return False
        self.step()
        return True

    def need(self, kind: str, word: str) -> None:
        if not self.take(kind, word):
            raise self.wrong(f"expected {word!r}, found {shorten(self.word)}")

    def name(self) -> str:
        """An id; quoted parts may be joined by `+`."""
        if self.kind != "id":
            raise self.wrong(f"expected a name, found {shorten(self.word)}")
        text = self.word
        self.step()
        while self.take("mark", "+"):
            if self.kind != "id":
                raise self.wrong(f"expected a text after +, found {shorten(self.word)}")
            text += self.word
            self.step()
        return text

    def graph(self) -> DotGraph:
        self.strict = self.take("keyword", "strict")
        if self.take("keyword", "graph"):
            raise self.wrong("the graph has no directions", "write digraph, and -> between tasks")
        self.need("keyword", "digraph")
        if self.kind == "id":
            self.found.name = self.name()
        self.block({}, {})
        if self.kind != "end":
            raise self.wrong(
                f"there is more after the graph: {shorten(self.word)}", "give one graph in a file"
            )
        return self.found

    def block(self, nodes: dict[str, str], edges: dict[str, str]) -> list[str]:
        """`{ ... }` with defaults of the attributes of nodes and edges; returns the nodes named in it."""
        self.need("mark", "{")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.wrong(f"subgraphs are nested more than {MAX_DEPTH} deep", "flatten them")
        named: list[str] = []
        while not self.take("mark", "}"):
            named += self.statement(nodes, edges)
            self.take("mark", ";")
        self.depth -= 1
        return list(dict.fromkeys(named))  # a subgraph is a set of nodes

    def statement(self, nodes: dict[str, str], edges: dict[str, str]) -> list[str]:
        for word, defaults in (("node", nodes), ("edge", edges), ("graph", None)):
            if self.take("keyword", word):
                given = self.attributes()
                if defaults is not None:
                    defaults.update(given)
                return []
        group = self.operand(nodes, edges)
        if group is None:
            return []
        if self.kind != "arrow":
            given = self.attributes()
            if len(group) == 1:
                self.found.nodes[group[0]] |= given
            return group
        chain = [group]
        while self.kind == "arrow":
            if self.word == "--":
                raise self.wrong("an edge has no direction", "write ->")
            self.step()
            after = self.operand(nodes, edges)
            if after is None:
                raise self.wrong("expected a task after ->")
            chain.append(after)
        given = self.attributes()
        for before, after in pairwise(chain):
            self.connect(before, after, edges, given)
        return [node for part in chain for node in part]

    def connect(
        self, before: list[str], after: list[str], defaults: dict[str, str], given: dict[str, str]
    ) -> None:
        """Add an edge between each two nodes; in a strict graph, one that is there only gets the attributes given."""
        self.expanded += len(before) * len(after)
        most = max(EDGES_OF_SHORT_TEXT, len(self.text))  # a text that names each edge has fewer
        if self.expanded > most:
            raise self.wrong(f"groups of tasks stand for more than {most} edges", "write each edge, or fewer")
        values = defaults | given
        for a, b in product(before, after):
            if not self.strict:
                self.found.edges.append((a, b, values))
            elif (a, b) in self.first:
                self.first[a, b].update(given)
            else:
                self.first[a, b] = dict(values)
                self.found.edges.append((a, b, self.first[a, b]))

    def operand(self, nodes: dict[str, str], edges: dict[str, str]) -> list[str] | None:
        """The nodes of a name or subgraph; None for `name = value`, which is a setting of the graph."""
        if self.take("keyword", "subgraph"):
            if self.kind == "id":
                self.name()
            return self.block(dict(nodes), dict(edges))
        if (self.kind, self.word) == ("mark", "{"):
            return self.block(dict(nodes), dict(edges))
        node = self.name()
        if self.take("mark", "="):
            self.name()
            return None
        while self.take("mark", ":"):  # a port
            self.name()
        self.found.nodes.setdefault(node, dict(nodes))
        return [node]

    def attributes(self) -> dict[str, str]:
        """Any number of `[name = value, ...]`; those that are read."""
        values: dict[str, str] = {}
        while self.take("mark", "["):
            while not self.take("mark", "]"):
                key = self.name()
                value = self.name() if self.take("mark", "=") else "true"
                if key in _READ:
                    values[key] = value
                if not self.take("mark", ","):
                    self.take("mark", ";")
        return values


def _unescaped(match: re.Match[str]) -> str:
    return {"n": "\n", "l": "\n", "r": "\n", "\n": ""}.get(match[1], match[1])
