"""Files of named sections with keys and values, as INI or TOML: `[filter clip]`, `[source MG1]`.

Both give the same sections, so that their meaning is implemented once. Plain numbers are megabytes, MB/s
and seconds; text may have a unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from headrace.formats.files import encode_text, read_file, write_file
from headrace.formats.shapes import shorten
from headrace.formats.tables import Table, as_quantity
from headrace.formats.toml_text import parse_toml
from headrace.model.errors import BadFile
from headrace.model.pipeline import MEGABYTE

MAX_BYTES = 16_000_000
MAX_SECTIONS = 250_000
MAX_NAME = 255
ARROW = " -> "
_KINDS = ("filter", "stream", "source", "cluster", "host", "link", "copies", "flow")
_INI = re.compile(rb"^[ \t]*+\[(?:" + "|".join(_KINDS).encode() + rb")[ \t]++[^\]\n]++\]", re.MULTILINE)
_COMMENT = re.compile(r"\s[#;]")
_UNSAFE = re.compile(r"[\[\]=;#\n\r\t\0]|->|^\s|\s$|^$")


def is_ini(head: bytes) -> bool:
    """Whether a file that begins like this holds INI sections of ours."""
    return _INI.search(head) is not None


class Section(Table):
    """One section: its kind, its name, and its values."""

    def __init__(self, kind: str, name: str, values: Mapping[str, Any], file: str) -> None:
        super().__init__(values, f"{file}: [{kind}{' ' if name else ''}{name}]", untyped=True)
        self.kind = kind
        self.name = name
        self.file = file

    def mega(self, key: str, what: str, default: float | None = None) -> float:
        """A size or rate in megabytes: a plain number, or text with a unit."""
        value = self.values.get(key)
        if not isinstance(value, str) or _is_plain_number(value):
            return self.number(key, default)
        return as_quantity(value, what, key, self) / MEGABYTE

    def ends(self) -> tuple[str, str]:
        """The two names of `[stream a -> b]`."""
        return split_arrow(self.name, self)


def _is_plain_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def split_arrow(text: str, section: Section) -> tuple[str, str]:
    source, arrow, target = text.partition("->")
    if not (arrow and source.strip() and target.strip()):
        raise section.wrong(f"{shorten(text)} does not name two endpoints", "write a -> b")
    return source.strip(), target.strip()


def read_sections(path: str | Path) -> list[Section]:
    """All sections of an INI or TOML file, in order: O(bytes)."""
    where = str(path)
    data = read_file(path, limit=MAX_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadFile(f"not UTF-8 text in line {line}", where=where, hint="save it as UTF-8") from None
    sections = []
    for section in _from_ini(text, where) if _INI.search(data) else _from_toml(text.encode(), where):
        if len(section.name) > 2 * MAX_NAME + len(ARROW):
            what = (
                f"[{section.kind[:20]} {section.name[:40]}...]: its name has {len(section.name)} characters"
            )
            raise BadFile(what, where=where, hint=f"at most {MAX_NAME}")
        sections.append(section)
        if len(sections) > MAX_SECTIONS:
            raise BadFile(f"more than {MAX_SECTIONS} sections", where=where, hint="split it")
    return sections


def _from_ini(text: str, where: str) -> Iterator[Section]:
    """Line by line, each key and section once: O(characters). configparser takes 40 times as long."""
    title = ""
    values: dict[str, str] = {}
    seen: set[str] = set()
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        comment = _COMMENT.search(line)
        if comment is not None:
            line = line[: comment.start()].rstrip()
        if line[0] == "[" and line[-1] == "]":
            if title:
                yield _ini_section(title, values, where)
            title, values = " ".join(line[1:-1].split()), {}
            if title in seen or not title:
                problem = f"section [{shorten(title)}] in line {number} is a duplicate or has no name"
                raise BadFile(problem, where=where, hint="merge the duplicates, or add a name")
            seen.add(title)
            continue
        key, equals, value = line.partition("=")
        key = key.strip()
        if not (equals and key and title) or key in values:
            problem = f"line {number} is {shorten(line)}: neither a section nor a new `key = value` in one"
            raise BadFile(problem, where=where, hint="fix that line")
        values[key] = value.strip()
    if title:
        yield _ini_section(title, values, where)


def _ini_section(title: str, values: dict[str, str], where: str) -> Section:
    kind, _, name = title.partition(" ")
    return Section(kind, name, values, where)


def _from_toml(data: bytes, where: str) -> Iterator[Section]:
    """`[[filter]]` with a name, `[[stream]]` with from and to, `[[source]]` with shares, plain tables."""
    document = parse_toml(data, where)
    for kind, value in document.items():
        entries = value if isinstance(value, list) else [value]
        for entry in entries:
            if not isinstance(entry, dict):
                raise BadFile(
                    f"{shorten(kind)} is {shorten(entry)}", where=where, hint=f"write it as [[{kind}]]"
                )
            yield _toml_section(kind, dict(entry), where)


def _toml_section(kind: str, entry: dict[str, Any], where: str) -> Section:
    if kind in ("stream", "link") and {"from", "to"} <= entry.keys():
        name = f"{entry.pop('from')}{ARROW}{entry.pop('to')}"
    elif kind in ("pipeline", "platform", "deployment", "knobs"):
        name = ""
    else:
        name = str(entry.pop("name", ""))
    for key in [k for k, v in entry.items() if isinstance(v, dict)]:
        inner = entry.pop(key)
        entry |= {f"{key} {k}" if key != "shares" else k: v for k, v in inner.items()}
    return Section(kind, name, entry, where)


def write_sections(
    path: str | Path, sections: Iterable[tuple[str, str, Mapping[str, object]]], comment: str
) -> None:
    """Write INI: kind, name and values of each section."""
    lines = [f"# {comment}"]
    for kind, name, values in sections:
        lines += ["", f"[{kind}{' ' if name else ''}{name}]"]
        lines += [f"{key} = {_value(value)}" for key, value in values.items()]
    write_file(path, encode_text("\n".join(lines) + "\n", str(path)))


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value) if isinstance(value, float) else str(value)


def plain_name(name: str, path: str | Path) -> str:
    """The name, if it can be written in an INI file."""
    if _UNSAFE.search(name) or len(name) > MAX_NAME:
        raise BadFile(
            f"the name {shorten(name)} cannot be used in an INI file",
            where=str(path),
            hint="use another name",
        )
    return name
