"""An experiment with its program loaded: what each substitution means, and whether it fits."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from headrace.experiment.sweep.axes import Axis, Label, Points, What, combinations
from headrace.experiment.sweep.command_sweep import command_program
from headrace.formats.experiment_toml import ExperimentFile, Substitution
from headrace.formats.loading import load_program
from headrace.formats.python_program import import_file, is_python_program
from headrace.formats.sibling_path import sibling_path
from headrace.model.errors import BadFile, BadProgram, HeadraceError
from headrace.model.program import Command, Program
from headrace.record.code_parts import accepts
from headrace.runtime.url_files import is_url


@dataclass(frozen=True, eq=False)
class Experiment:
    """An experiment file with its program."""

    file: ExperimentFile
    axes: tuple[Axis, ...]
    points: Points
    build: Callable[[Mapping[str, Any]], Program]
    """The program for values of its function's parameters."""
    notes: tuple[str, ...] = ()
    folder: Path = field(default_factory=Path)
    """Relative paths start here."""

    @property
    def name(self) -> str:
        return self.file.name


class Files:
    """Python files that an experiment names, each imported once."""

    def __init__(self, file: ExperimentFile) -> None:
        self.file = file
        self.modules: dict[Path, ModuleType] = {}

    def find(self, spec: str, where: str) -> Any:
        """What `file.py:name` names."""
        path_text, _, name = spec.partition(":")
        if not path_text.endswith(".py") or not name.isidentifier():
            raise BadFile(f"{spec[:80]!r} names no function", where=where, hint="give file.py:name")
        path = sibling_path(self.file.path, path_text)
        if path not in self.modules:
            if not path.is_file():
                raise BadFile(f"there is no file {path_text!r}", where=where, hint="check the path")
            with _importable(path.parent):
                self.modules[path] = import_file(path)
        if not hasattr(self.modules[path], name):
            near = difflib.get_close_matches(name, list(vars(self.modules[path])), 1)
            raise BadFile(
                f"{path_text} does not define {name!r}", where=where, hint=near[0] if near else "define it"
            )
        return getattr(self.modules[path], name)


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let a file import those beside it."""
    text = str(folder.resolve())
    sys.path.insert(0, text)
    try:
        yield
    finally:
        sys.path.remove(text)


def bind(file: ExperimentFile, *, commands: bool = False) -> Experiment:
    """Load the program and check every substitution against it; `commands` allows those of a WfFormat file.

    Raises
    ------
    BadFile
        If a substitution names nothing, clashes with another, or does not fit.
    """
    files = Files(file)
    build, parameters = _builder(file, files, commands)
    given = {s.target: s for s in file.substitutions if s.target in parameters and not s.parameter}
    base = build({name: of.values.values[0] for name, of in given.items()})
    taken: set[str] = {s.target for s in file.substitutions if not s.parameter}
    repeated = [s.parameter for s in file.substitutions if s.parameter]
    axes, notes = [], []
    for of in file.substitutions:
        short = of.parameter and of.parameter not in taken and repeated.count(of.parameter) == 1
        name = of.parameter if short else f"{of.target}.{of.parameter}" if of.parameter else of.target
        axes.append(_axis(of, name, base, parameters, files))
    for axis in axes:
        if axis.what == "parameter":
            notes += _check_parameter(axis, axes, base, file)
    combined = combinations(axes, file)
    return Experiment(file, tuple(axes), combined, build, tuple(notes), file.path.parent)


def bodies(target: str, axes: Sequence[Axis], base: Program) -> list[Any]:
    """The functions and commands that a task can have: its own, or those that take its place."""
    for axis in axes:
        if axis.what == "task" and axis.target == target:
            return list(axis.values)
    return [base.tasks[target].body]


def _builder(
    file: ExperimentFile, files: Files, commands: bool
) -> tuple[Callable[[Mapping[str, Any]], Program], tuple[str, ...]]:
    """What makes the program, and the names of its parameters."""
    where = str(file.path)
    if file.sweep is not None:
        made = command_program(file, files.find)
        return (lambda values: made), ()
    if not is_python_program(file.program):
        # An absolute path: inputs are then found wherever the experiment is executed.
        loaded = load_program(sibling_path(file.path, file.program).absolute(), commands=commands)
        return (lambda values: loaded), ()
    spec = file.program if ":" in file.program else f"{file.program}:program"
    found = files.find(spec, where)
    if isinstance(found, Program):
        return (lambda values: found), ()
    if not callable(found):
        raise BadFile(
            f"{spec!r} is of type {type(found).__name__}", where=where, hint="name a headrace.Program"
        )

    def build(values: Mapping[str, Any]) -> Program:
        problem = accepts(lambda: None, 0) if not values else _refusal(found, values)
        if problem:
            raise BadFile(f"{spec}: {problem}", where=where, hint="check [replace] and the function")
        program = found(**values)
        if not isinstance(program, Program):
            raise BadProgram(
                f"{spec!r} returns a {type(program).__name__}", where=where, hint="return a headrace.Program"
            )
        return program

    return build, _parameters(found)


def _parameters(function: Any) -> tuple[str, ...]:
    import inspect

    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


def _refusal(function: Any, values: Mapping[str, Any]) -> str:
    import inspect

    try:
        inspect.signature(function).bind(**values)
    except TypeError as error:
        return str(error)
    except ValueError:
        return ""
    return ""


def _axis(of: Substitution, name: str, base: Program, parameters: tuple[str, ...], files: Files) -> Axis:
    where = f"{files.file.path}: [{'set' if of.parameter else 'replace'}.{of.target}]"
    inputs = {item.name: item for item in base.inputs()}
    meanings: list[What] = [
        *(["task"] if of.target in base.tasks else []),  # type: ignore[list-item]
        *(["input"] if of.target in inputs else []),  # type: ignore[list-item]
        *(["program"] if of.target in parameters else []),  # type: ignore[list-item]
    ]
    if of.parameter:
        if of.target not in base.tasks:
            raise _no_such(of.target, [*base.tasks], "task", where)
        return Axis(
            name, "parameter", of.target, _labels(of.values.values, ()), of.values.values,
            of.parameter, of.values.drawn,
        )  # fmt: skip
    if not meanings:
        raise _no_such(of.target, [*base.tasks, *inputs, *parameters], "task, input or parameter", where)
    if len(meanings) > 1:
        raise BadFile(
            f"{of.target!r} is both a {meanings[0]} and a {meanings[1]}"
            .replace("a input", "an input").replace("a program", "a parameter"),
            where=where,
            hint="rename one of them in the program",
        )  # fmt: skip
    values, labels = of.values.values, of.labels
    if meanings[0] == "task":
        values, found = _functions(of, base, files, where)
        labels = labels or found
    elif meanings[0] == "input" and inputs[of.target].path is not None:
        values, found = _paths(values, files, where)
        labels = labels or found
    return Axis(name, meanings[0], of.target, _labels(values, labels), values, "", of.values.drawn)


def _no_such(name: str, known: list[str], what: str, where: str) -> HeadraceError:
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}" if near else f"one of {', '.join(map(repr, known[:12]))}"
    return BadFile(f"the program has no {what} {name[:60]!r}", where=where, hint=hint)


def _functions(
    of: Substitution, base: Program, files: Files, where: str
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """What takes the place of a task's function; each must accept the task's inputs."""
    task = base.tasks[of.target]
    found: list[Any] = []
    names: list[str] = []
    for value in of.values.values:
        if isinstance(value, tuple):
            stdout = task.body.stdout if isinstance(task.body, Command) else None
            literal = task.body.literal if isinstance(task.body, Command) else False
            found.append(Command(value, stdout, literal))
            names.append(Path(value[0]).name)
            continue
        if not isinstance(value, str):
            raise BadFile(f"{value!r} cannot replace a task", where=where, hint='give "file.py:name"')
        function = files.find(value, where)
        if not callable(function):
            raise BadFile(f"{value!r} is not a function", where=where, hint="name a function")
        problem = accepts(function, len(task.inputs))
        if problem:
            told = f"task {of.target!r} has {len(task.inputs)} input{'s' * (len(task.inputs) != 1)}"
            raise BadFile(
                f"{value!r} cannot replace it: {told}, and the function {problem}",
                where=where,
                hint="give a function with the same inputs",
            )
        found.append(function)
        names.append(value.partition(":")[2])
    return tuple(found), tuple(names)


def _paths(values: tuple[Any, ...], files: Files, where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files in place of a file; a path that is not absolute starts in the experiment's folder."""
    for value in values:
        if not isinstance(value, str) or "\0" in value or not value:
            raise BadFile(
                f"{str(value)[:60]!r} cannot replace a file", where=where, hint="give paths of files"
            )
        if not is_url(value) and not Path(value).is_absolute():
            sibling_path(files.file.path, value)
        if not is_url(value) and not (files.file.path.parent / value).exists():
            raise BadFile(f"there is no file {value[:200]!r}", where=where, hint="check the path")
    stems = [Path(value).name.partition(".")[0] or value for value in values]
    unique = len(set(stems)) == len(stems)
    return values, tuple(stems) if unique else values


def _labels(values: tuple[Any, ...], given: tuple[str, ...]) -> tuple[Label, ...]:
    """A label for each value, different for different positions."""
    labels: list[Label] = list(given) or [
        ("true" if value else "false") if isinstance(value, bool) else value for value in values
    ]
    seen: dict[Label, int] = {}
    for k, label in enumerate(labels):
        seen[label] = seen.get(label, 0) + 1
        if seen[label] > 1:
            labels[k] = f"{label}#{seen[label]}"
    return tuple(labels)


def takes(body: Any, inputs: int, parameter: str) -> bool:
    """Whether a function or command has a parameter."""
    if isinstance(body, Command):
        return any(f"{{{parameter}}}" in argument for argument in body.argv)
    return body is not None and not accepts(body, inputs, parameter)


def _check_parameter(axis: Axis, axes: list[Axis], base: Program, file: ExperimentFile) -> list[str]:
    """Refuse a parameter that no function has; say which functions do not have it."""
    task = base.tasks[axis.target]
    where = f"{file.path}: [set.{axis.target}]"
    if axis.parameter in task.inputs and isinstance(task.body, Command):
        raise BadFile(f"{axis.parameter!r} is also an input of the task", where=where, hint="rename one")
    options = bodies(axis.target, axes, base)
    without = [body for body in options if not takes(body, len(task.inputs), axis.parameter)]
    if len(without) == len(options):
        reason = (
            f"{{{axis.parameter}}} is in no argument" if isinstance(options[0], Command)
            else "it has nothing to execute" if options[0] is None
            else accepts(options[0], len(task.inputs), axis.parameter)
        )  # fmt: skip
        raise BadFile(
            f"task {axis.target!r} cannot get {axis.parameter!r}: {reason}",
            where=where,
            hint="give the function a parameter of this name"
            if options[0] is not None
            else "add --allow-commands if the program is a file with commands that you trust",
        )
    names = [getattr(body, "__name__", str(body)) for body in without]
    return [f"{name} has no parameter {axis.parameter!r}: it runs once for all its values" for name in names]
