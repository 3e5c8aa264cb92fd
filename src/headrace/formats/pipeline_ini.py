"""Pipelines as INI or TOML: filters with the results of a trial run, streams, sources and knobs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from headrace.formats.format import Format
from headrace.formats.sections import (
    ARROW,
    Section,
    plain_name,
    read_sections,
    split_arrow,
    write_sections,
)
from headrace.model.errors import BadFile, HeadraceError
from headrace.model.pipeline import FilterProfile, Knobs, Pipeline, Source, Stream

_MARK = re.compile(rb"^[ \t]*+(?:\[filter[ \t]++[^\]\n]++\]|\[\[[ \t]*+filter[ \t]*+\]\])", re.MULTILINE)
MAX_FILTERS = 1_000
MAX_STREAMS = 10_000
MAX_SOURCES = 200
_FILTER = ("seconds", "volume", "power", "kind")
_KNOBS = ("host_cost", "cross", "spare", "least")
_SECTIONS = ("pipeline", "filter", "stream", "source", "knobs")


def read_pipeline(path: str | Path) -> Pipeline:
    """Read a pipeline; without `[stream]` sections its filters form a chain in the order of the file."""
    sections = read_sections(path)
    _only(sections, _SECTIONS)
    filters = [_filter(s) for s in sections if s.kind == "filter"]
    streams = [_stream(s) for s in sections if s.kind == "stream"]
    if len(filters) > MAX_FILTERS:
        raise BadFile(f"{len(filters)} filters", where=str(path), hint=f"at most {MAX_FILTERS}")
    if len(streams) > MAX_STREAMS:
        raise BadFile(f"{len(streams)} streams", where=str(path), hint=f"at most {MAX_STREAMS}")
    name = Path(path).name.partition(".")[0] or "pipeline"
    for section in sections:
        if section.kind == "pipeline":
            section.require_known(("name",))
            name = section.text("name", name)
    try:
        return Pipeline(name, filters, streams or None, _sources(sections), read_knobs(sections))
    except HeadraceError as error:
        raise error.at(str(path)) from None


def read_sources(path: str | Path) -> list[Source]:
    """The `[source]` sections of a file, which may hold nothing else."""
    sections = read_sections(path)
    _only(sections, _SECTIONS)
    found = _sources(sections)
    if not found:
        raise BadFile("no sources", where=str(path), hint="add [source NAME] with a line HOST = SHARE")
    return found


def write_pipeline(pipeline: Pipeline, path: str | Path) -> None:
    """Write a pipeline that `read_pipeline` reads back to an equal one: INI."""
    try:
        write_sections(path, _sections(pipeline, path), "pipeline with the results of a trial run")
    except HeadraceError as error:
        raise error if str(path) in error.where else error.at(str(path)) from None


def _only(sections: list[Section], known: tuple[str, ...]) -> None:
    for section in sections:
        if section.kind not in known:
            raise section.wrong("unknown section", f"one of {', '.join(known)}")
        if section.kind in ("filter", "source") and not section.name:
            raise section.wrong(f"a {section.kind} has no name", f"write [{section.kind} NAME]")


def _filter(section: Section) -> FilterProfile:
    section.require_known(_FILTER)
    return FilterProfile(
        section.name,
        section.number("seconds"),
        section.mega("volume", "size", 0.0),
        section.number("power", 1.0),
        section.text("kind", ""),
    )


def _stream(section: Section) -> Stream:
    section.require_known(("volume",))
    source, target = section.ends()
    return Stream(source, target, section.mega("volume", "size") if "volume" in section.values else None)


def _sources(sections: list[Section]) -> list[Source]:
    found = [
        Source(s.name, {host: s.number(host) for host in s.values}) for s in sections if s.kind == "source"
    ]
    if len(found) > MAX_SOURCES:
        raise BadFile(f"{len(found)} sources", where=sections[0].file, hint=f"at most {MAX_SOURCES}")
    return found


def read_knobs(sections: list[Section], default: Knobs | None = None) -> Knobs:
    """The knobs of a file, or the default if it has none."""
    section = next((s for s in sections if s.kind == "knobs"), None)
    if section is None:
        return default or Knobs()
    section.require_known(_KNOBS, "least ", "cross ")
    plain = Knobs()
    return Knobs(
        host_cost=section.number("host_cost", plain.host_cost),
        cross=section.number("cross", plain.cross),
        spare=section.number("spare", plain.spare),
        least=section.number("least", plain.least),
        least_of={
            k.removeprefix("least "): section.number(k) for k in section.values if k.startswith("least ")
        },
        weights={
            split_arrow(k.removeprefix("cross "), section): section.number(k)
            for k in section.values
            if k.startswith("cross ")
        },
    )


def _sections(pipeline: Pipeline, path: str | Path) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    yield "pipeline", "", {"name": plain_name(pipeline.name, path)}
    for f in pipeline.filters:
        values: dict[str, object] = {"seconds": f.seconds, "volume": f.volume, "power": f.power}
        if f.kind:
            values["kind"] = plain_name(f.kind, path)
        yield "filter", plain_name(f.name, path), values
    for s in pipeline.streams:
        yield "stream", f"{s.source}{ARROW}{s.target}", {} if s.volume is None else {"volume": s.volume}
    for source in pipeline.sources:
        shares = {plain_name(host, path): share for host, share in source.shares.items()}
        yield "source", plain_name(source.name, path), shares
    yield "knobs", "", knob_values(pipeline.knobs, path)


def knob_values(knobs: Knobs, path: str | Path) -> dict[str, object]:
    """The values of the knobs section."""
    values: dict[str, object] = {key: getattr(knobs, key) for key in _KNOBS}
    values |= {f"least {plain_name(name, path)}": share for name, share in knobs.least_of.items()}
    return values | {
        f"cross {plain_name(a, path)}{ARROW}{plain_name(b, path)}": w for (a, b), w in knobs.weights.items()
    }


def _is_pipeline(head: bytes) -> bool:
    return not head.startswith(b"{") and _MARK.search(head) is not None


FORMATS = (
    Format(
        "ini",
        "pipeline",
        "a pipeline as INI; also read as TOML",
        suffixes=(".ini",),
        sniff=_is_pipeline,
        read=read_pipeline,
        write=write_pipeline,
    ),
)
