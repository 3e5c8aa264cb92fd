"""The parts of WfFormat documents that Headrace reads; all other keys are ignored.

Two layouts: 1.0 to 1.4 list tasks (up to 1.2, `jobs`) with their run times and files in one place; 1.5 and 1.6 keep the
`specification` (tasks, files) apart from the `execution` (run times, commands).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Literal, TypeAlias

from pydantic import AliasChoices, FailFast, Field, TypeAdapter

from headrace.formats.shapes import MAX_NUMBER, STRICT, Amount, Name, Names
from headrace.model.needs import MOST_MEMORY


@dataclass(slots=True)
class Command:
    program: str | None = None


LabelValue: TypeAlias = (
    Annotated[str, Field(max_length=4096)] | Annotated[float, Field(ge=-MAX_NUMBER, le=MAX_NUMBER)]
)
Labels: TypeAlias = Annotated[dict[Name, LabelValue], Field(max_length=1000)]
"""Headrace's own, since the schema has none: texts or numbers by which rules select tasks."""


Resources: TypeAlias = Annotated[dict[Name, int], Field(max_length=1000)]


@dataclass(slots=True)
class SplitTask:
    """A task of `workflow.specification`."""

    id: Name
    name: str | None = None
    category: str | None = None
    parents: Names = field(default_factory=list)
    children: Names = field(default_factory=list)
    inputs: Annotated[Names, Field(alias="inputFiles")] = field(default_factory=list)
    outputs: Annotated[Names, Field(alias="outputFiles")] = field(default_factory=list)
    cores: Annotated[int, Field(ge=1, le=10**6)] = 1
    """Headrace's own: cores of one host, bytes of its memory, named resources of it, earliest start and latest end."""
    memory: Annotated[float, Field(ge=0, le=MOST_MEMORY)] = 0.0
    resources: Resources = field(default_factory=dict)
    release: Amount = 0.0
    deadline: Amount | None = None
    arch_speeds: Annotated[list[Annotated[float, Field(gt=0, le=MAX_NUMBER)]], Field(alias="archSpeeds")] = (
        field(default_factory=list)
    )
    """Headrace's own: its speed on each architecture, next to the first."""
    kind: str | None = None
    """Headrace's own, if it is not the name of the command's program."""
    labels: Labels = field(default_factory=dict)


@dataclass(slots=True)
class SplitFile:
    id: Name
    size: Annotated[Amount, Field(alias="sizeInBytes")]
    result: bool = False
    """Headrace's own mark of a declared result."""
    sites: Names = field(default_factory=list)
    """Headrace's own: where a file from outside lies, or where a result must come to one of."""
    unknown: bool = False
    """Headrace's own: the size is not known, whatever `sizeInBytes` says."""


@dataclass(slots=True)
class Specification:
    tasks: Annotated[list[SplitTask], FailFast()]
    files: Annotated[list[SplitFile], FailFast()] = field(default_factory=list)


@dataclass(slots=True)
class Executed:
    """A task of `workflow.execution`."""

    id: Name
    runtime: Annotated[Amount, Field(alias="runtimeInSeconds")]
    command: Command | None = None


@dataclass(slots=True)
class Execution:
    tasks: Annotated[list[Executed], FailFast()]


@dataclass(slots=True)
class FlatFile:
    """A file in a task of 1.0 to 1.3 (`size`) or 1.4 (`sizeInBytes`)."""

    name: Name
    link: Literal["input", "output"]
    size: Annotated[Amount, Field(validation_alias=AliasChoices("sizeInBytes", "size"))]
    path: str | None = None


@dataclass(slots=True)
class FlatTask:
    name: Name
    id: str | None = None
    type: str = "compute"
    category: str | None = None
    command: Command | None = None
    parents: Names = field(default_factory=list)
    children: Names = field(default_factory=list)
    files: Annotated[list[FlatFile], FailFast()] = field(default_factory=list)
    runtime: Annotated[Amount | None, Field(validation_alias=AliasChoices("runtimeInSeconds", "runtime"))] = (
        None
    )
    labels: Labels = field(default_factory=dict)


@dataclass(slots=True)
class Workflow:
    specification: Specification | None = None
    execution: Execution | None = None
    tasks: Annotated[list[FlatTask], FailFast(), Field(validation_alias=AliasChoices("tasks", "jobs"))] = (
        field(default_factory=list)
    )


@dataclass(slots=True)
class Document:
    __pydantic_config__ = STRICT  # holds for the parts too

    version: Annotated[str, Field(alias="schemaVersion")]
    workflow: Workflow
    name: str = "program"


@cache
def document_adapter() -> TypeAdapter[Document]:
    """Built at first use: it takes a few milliseconds."""
    return TypeAdapter(Document)
