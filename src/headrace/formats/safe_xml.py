"""Parse untrusted XML: no entities are declared or expanded, nothing is loaded, and size and depth are limited."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from headrace.formats.files import read_file
from headrace.formats.shapes import shorten
from headrace.model.errors import BadFile

MAX_ELEMENTS = 20_000_000
MAX_DEPTH = 200


def read_xml(path: str | Path, *, max_elements: int = MAX_ELEMENTS) -> Element:
    """The root element of a file: O(bytes)."""
    return parse_xml(read_file(path), str(path), max_elements=max_elements)


def parse_xml(data: bytes, where: str, *, max_elements: int = MAX_ELEMENTS) -> Element:
    """The root element of a document.

    A document type may be named, as SimGrid files do, but is not read; one that declares something is refused.

    >>> parse_xml(b'<a><b c="1"/></a>', "x.xml")[0].get("c")
    '1'
    >>> parse_xml(b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "x.xml")
    Traceback (most recent call last):
        ...
    headrace.model.errors.BadFile: x.xml: line 1: it declares a document type (try: remove the declarations in [...])
    """
    parser = expat.ParserCreate(namespace_separator="}")
    builder = _Builder(parser, where, max_elements)
    try:
        parser.Parse(data, True)
        return builder.tree.close()
    except expat.ExpatError as error:
        raise BadFile(
            f"not valid XML: {expat.errors.messages[error.code]} in line {error.lineno}",
            where=where,
            hint="fix the file at that line",
        ) from None
    except (LookupError, ValueError):  # the codec of the declared encoding is missing, or not of single bytes
        raise BadFile(
            f"its encoding is {shorten(builder.encoding)}, which is not read",
            where=where,
            hint="save it as UTF-8",
        ) from None


class _Builder:
    """Receives the events of the parser."""

    def __init__(self, parser: expat.XMLParserType, where: str, max_elements: int) -> None:
        self.parser, self.where, self.max_elements = parser, where, max_elements
        self.tree = TreeBuilder()
        self.depth = 0
        self.elements = 0
        self.encoding: str | None = None
        parser.buffer_text = True
        parser.XmlDeclHandler = self.declaration
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.tree.data
        parser.StartDoctypeDeclHandler = self.doctype
        parser.EntityDeclHandler = self.entity
        parser.SkippedEntityHandler = self.skipped

    def declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        self.encoding = encoding

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        self.elements += 1
        if self.depth > MAX_DEPTH:
            raise self.wrong(f"elements are nested more than {MAX_DEPTH} deep", "flatten it")
        if self.elements > self.max_elements:
            raise self.wrong(f"it has more than {self.max_elements} elements", "split it")
        self.tree.start(_plain(name), {_plain(key): value for key, value in attributes.items()})

    def end(self, name: str) -> None:
        self.depth -= 1
        self.tree.end(_plain(name))

    def doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        if internal:
            raise self.wrong("it declares a document type", "remove the declarations in [...]")

    def entity(self, *declared: object) -> None:
        raise self.wrong("it declares entities", "remove them")

    def skipped(self, name: str, is_parameter: int) -> None:
        raise self.wrong(f"it uses the entity {name!r}", "replace it by its text")

    def wrong(self, problem: str, hint: str) -> BadFile:
        return BadFile(f"line {self.parser.CurrentLineNumber}: {problem}", where=self.where, hint=hint)


def _plain(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition("}")[2]
