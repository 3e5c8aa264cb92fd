"""Programs that a Python file builds: `file.py:name`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from headrace.formats.format import Format
from headrace.model.errors import BadFile, BadProgram
from headrace.model.program import Program
from headrace.model.user_code import user_code


def is_python_program(spec: str) -> bool:
    """
    >>> is_python_program("examples/mosaic.py:program"), is_python_program("montage.json.gz")
    (True, False)
    """
    path, _, _ = spec.partition(":")
    return path.endswith(".py")


def load_python_program(spec: str | Path) -> Program:
    """Execute the file and return the program, or what the function returns, that is named after the colon.

    The name defaults to `program`. This executes the file: use it only on files that you trust.
    """
    path_text, _, name = str(spec).partition(":")
    name = name or "program"
    found = load_from_file(f"{path_text}:{name}")
    if callable(found) and not isinstance(found, Program):
        with user_code(f"the function {name!r}", path_text):
            program = found()
    else:
        program = found
    if not isinstance(program, Program):
        raise BadProgram(
            f"{name!r} is of type {type(program).__name__}, not a Program",
            where=path_text,
            hint="name a headrace.Program",
        )
    return program


def _is_program(value: object) -> bool:
    return isinstance(value, Program)


def load_from_file(spec: str, suits: Callable[[Any], bool] = _is_program) -> Any:
    """Execute `file.py` and return its `name`, given `file.py:name`; if it has none, say which of its values suit."""
    path_text, _, name = spec.partition(":")
    path = Path(path_text)
    if not path.is_file():
        raise BadFile("no such file", where=path_text, hint="give the path of a Python file")
    module = import_file(path)
    if not hasattr(module, name):
        made = [key for key, value in vars(module).items() if suits(value)]
        raise BadProgram(
            f"does not define {name!r}",
            where=path_text,
            hint=f"{path_text}:{made[0]}" if made else f"define {name!r} in the file",
        )
    return getattr(module, name)


def import_file(path: Path) -> ModuleType:
    """The module of a file, registered under its own name so that its functions can be pickled."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise BadFile("cannot be imported", where=str(path), hint="give the path of a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    with user_code("importing it", str(path)):
        spec.loader.exec_module(module)
    return module


FORMATS = (
    Format(
        "python",
        "program",
        "a Python file that builds the program",
        suffixes=(".py",),
        read=load_python_program,
        packed=False,
    ),
)
