"""Commands of WfFormat documents, read only when the user allows them to be executed.

Arguments name files as they are: a task's working folder has its inputs under their names, and its outputs are expected
there. Inputs of the workflow are looked for beside its file. Names that are no plain relative paths are refused, and so
are programs that only a shell could start. Headrace's own keys of a command: `stdout`, the output that receives what it
prints, and `placeholders`, if `{name}` in an argument stands for a file, as in Headrace's Python programs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import FailFast, TypeAdapter

from headrace.formats.files import read_file
from headrace.formats.shapes import STRICT, Name, read_shape, shorten
from headrace.formats.wfformat import read_program
from headrace.model.errors import BadProgram, HeadraceError
from headrace.model.program import Command, Program, Task
from headrace.model.safe_path import safe_path

LONGEST_ARGUMENT = 100_000
"""Characters; the limit of Linux is about 131,000 bytes."""


@dataclass(slots=True)
class _Command:
    program: str | None = None
    arguments: Annotated[list[str], FailFast()] = field(default_factory=list)
    stdout: str | None = None
    placeholders: bool = False


@dataclass(slots=True)
class _Task:
    id: Name | None = None
    command: _Command | None = None


_Tasks: TypeAlias = Annotated[list[_Task], FailFast()]


@dataclass(slots=True)
class _Execution:
    tasks: _Tasks = field(default_factory=list)


@dataclass(slots=True)
class _Workflow:
    execution: _Execution | None = None
    tasks: _Tasks = field(default_factory=list)
    specification: dict[str, object] | None = None


@dataclass(slots=True)
class _Document:
    __pydantic_config__ = STRICT

    workflow: _Workflow


@cache
def _adapter() -> TypeAdapter[_Document]:
    return TypeAdapter(_Document)


def read_with_commands(path: str | Path) -> Program:
    """Read a workflow whose tasks execute their recorded commands: O(bytes).

    Raises
    ------
    BadFile, BadProgram
        As `read_program`; and if a task has no command, or a command or a name of a file cannot be used.
    """
    program = read_program(path)
    where = str(path)
    try:
        commands = _commands(read_shape(_adapter(), read_file(path), where), program)
        for name in program.data:
            safe_path(name, f"file {shorten(name)}")
        for name, task in program.tasks.items():
            program.tasks[name] = replace(task, body=_body(task, commands.get(name)))
    except HeadraceError as error:
        raise error.at(where) from None
    _place_files(program, Path(path).absolute().parent)
    return program


def has_commands(path: str | Path) -> bool:
    """Whether a document has commands that could be executed."""
    workflow = read_shape(_adapter(), read_file(path), str(path)).workflow
    tasks = [*workflow.tasks, *(workflow.execution.tasks if workflow.execution else [])]
    return any(task.command is not None and task.command.program for task in tasks)


def _commands(document: _Document, program: Program) -> dict[str, _Command]:
    """By task: of the execution by id (1.5), or in the order of tasks (1.4), in which the program has them."""
    workflow = document.workflow
    if workflow.specification is not None:
        tasks = workflow.execution.tasks if workflow.execution is not None else []
        return {task.id: task.command for task in tasks if task.id and task.command}
    return {
        name: task.command for name, task in zip(program.tasks, workflow.tasks, strict=True) if task.command
    }


def _body(task: Task, command: _Command | None) -> Command:
    where = f"task {shorten(task.name)}"
    if command is None or not command.program:
        raise BadProgram("it has no command", where=where, hint="run emulated tasks instead, with --emulate")
    argv = (command.program, *command.arguments)
    if command.program.split() != [command.program]:
        raise BadProgram(
            f"its program is {shorten(command.program)}, which only a shell could start",
            where=where,
            hint="give the program and its arguments separately",
        )
    for argument in argv:
        if "\0" in argument or len(argument) > LONGEST_ARGUMENT:
            raise BadProgram(
                f"the argument {shorten(argument)} cannot be passed to a program",
                where=where,
                hint="use shorter text without NUL",
            )
    if command.stdout is not None and command.stdout not in task.outputs:
        raise BadProgram(
            f"stdout is {shorten(command.stdout)}, which is none of its outputs",
            where=where,
            hint="name an output",
        )
    return Command(argv, command.stdout, literal=not command.placeholders)


def _place_files(program: Program, folder: Path) -> None:
    """Inputs are beside the workflow's file, results are written under their own names."""
    for item in program.inputs():
        program.data[item.name] = replace(item, path=str(folder / item.name))
    for item in program.results():
        if item.name in program.producer:
            program.data[item.name] = replace(item, path=item.name)
