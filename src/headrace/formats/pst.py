"""What the three PST formats share: lines, fields, numbers, errors.

PST is the parameter-sweep template of Berman, Casanova, Zagorodnov and Legrand (1999, cited in docs/formats.md):
text files that describe an application, a grid, and the behaviour of its hosts and links over time. Blank lines
and lines that begin with # are skipped. Fields are in angle brackets.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headrace.formats.files import read_file
from headrace.formats.shapes import MAX_NUMBER, shorten
from headrace.model.errors import BadFile

MAX_NAME = 255
_FIELD = re.compile(r"<([^<>]*)>\s*")
TRACE = "HeadraceTrace"
"""The first word of Headrace's own layout of behaviours."""
_COUNT = re.compile(rb"\d{1,18}(?:\s+[\d.eE+-]{1,30})?")
_HEADER = {"grid": "GridDescription", "work": "WorkDescription"}


class Line(NamedTuple):
    """A line that is neither blank nor a comment, and its place."""

    number: int
    text: str
    file: str

    def wrong(self, problem: str, hint: str) -> BadFile:
        return BadFile(problem, where=f"{self.file}: line {self.number}", hint=hint)

    def fields(self, text: str) -> list[str]:
        """The fields <a> <b> ... of a part of the line, without their brackets and outer blanks."""
        found: list[str] = []
        at = 0
        while at < len(text):
            match = _FIELD.match(text, at)
            if match is None:
                raise self.wrong(
                    f"{shorten(text[at:], 40)} where a field was expected", "write fields as <a> <b>"
                )
            found.append(match[1].strip())
            at = match.end()
        return found

    def whole(self, text: str, what: str, top: int = 10**9) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text) <= top):
            raise self.wrong(f"{what} is {shorten(text, 40)}", f"give a whole number from 0 to {top}")
        return int(text)

    def number_in(self, text: str, what: str, top: float = MAX_NUMBER) -> float:
        try:
            value = float(text) if text.isascii() and "_" not in text else math.nan
        except ValueError:
            value = math.nan
        if not 0 <= value <= top:
            raise self.wrong(f"{what} is {shorten(text, 40)}", f"give a number from 0 to {top:g}")
        return value

    def name(self, text: str, what: str) -> str:
        if not 0 < len(text) <= MAX_NAME:
            raise self.wrong(
                f"{what} is {shorten(text, 40)}", f"give a name of at most {MAX_NAME} characters"
            )
        return text


def read_lines(path: str | Path, limit: int) -> Iterator[Line]:
    """The lines of a text file that are neither blank nor comments: O(bytes)."""
    where = str(path)
    data = read_file(path, limit=limit)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadFile(
            f"not UTF-8 text: byte 0x{data[error.start]:02x}",
            where=f"{where}: line {line}",
            hint="save it as UTF-8",
        ) from None
    for number, raw in enumerate(io.StringIO(text), 1):
        content = raw.strip()
        if content and not content.startswith("#"):
            yield Line(number, content, where)


def header(lines: Iterator[Line], kind: str, path: str | Path) -> tuple[Line, list[str]]:
    """The first line: its keyword, version 1, and the numbers after them."""
    word = _HEADER[kind]
    first = next(lines, None)
    if first is None:
        raise BadFile("is empty", where=str(path), hint=f"begin with {word} 1")
    parts = first.text.split()
    if parts[0] != word:
        raise first.wrong(f"begins with {shorten(parts[0], 40)}", f"begin with {word} 1")
    if parts[1:2] != ["1"]:
        raise first.wrong(f"version is {shorten(' '.join(parts[1:2]), 40)}", f"begin with {word} 1")
    return first, parts[2:]


def pst_kind(head: bytes) -> str | None:
    """grid, work or behaviour, if a file begins like one after comments and blank lines; else None.

    >>> pst_kind(b"# mine\\nWorkDescription 1 2 3"), pst_kind(b"12\\n100\\n"), pst_kind(b"[[site]]")
    ('work', 'behaviour', None)
    """
    for line in head.split(b"\n")[:1000]:
        line = line.strip()
        if line and not line.startswith(b"#"):
            words = line.split()
            if words[0] == TRACE.encode() or _COUNT.fullmatch(line):
                return "behaviour"
            return next((kind for kind, word in _HEADER.items() if words[0] == word.encode()), None)
    return None


def written(value: float) -> str:
    """A number in at most 15 digits, so that numbers written by people round-trip.

    >>> written(600.0), written(0.1 + 0.2), written(1230456.5)
    ('600', '0.3', '1230456.5')
    """
    return f"{value:.15g}"
