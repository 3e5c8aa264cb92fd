"""A program built by a Python file of the user's own: `file.py:name`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from headrace.formats.format import Format
from headrace.model.errors import BadFile, BadProgram, HeadraceError
from headrace.model.program import Program


def is_python_program(spec: str) -> bool:
    """
    >>> is_python_program("examples/mosaic.py:program"), is_python_program("montage.json.gz")
    (True, False)
    """
    path, _, _ = spec.partition(":")
    return path.endswith(".py")


def load_python_program(spec: str) -> Program:
    """Run the file and take the program (or the function that makes it) named after the colon.

    The name defaults to `program`. This executes the file: use it on your own programs.
    """
    path_text, _, name = spec.partition(":")
    name = name or "program"
    found = load_from_file(f"{path_text}:{name}")
    program = found() if callable(found) and not isinstance(found, Program) else found
    if not isinstance(program, Program):
        raise BadProgram(
            f"{name!r} is a {type(program).__name__}, not a Program",
            where=path_text,
            hint="name a headrace.Program",
        )
    return program


def load_from_file(spec: str) -> Any:
    """Run `file.py` and take what it calls `name`, given `file.py:name`."""
    path_text, _, name = spec.partition(":")
    path = Path(path_text)
    if not path.is_file():
        raise BadFile("there is no such file", where=path_text, hint="give the path of a Python file")
    module = _import_file(path)
    if not hasattr(module, name):
        made = [key for key, value in vars(module).items() if isinstance(value, Program)]
        raise BadProgram(
            f"it has no {name!r}",
            where=path_text,
            hint=f"{path_text}:{made[0]}" if made else f"define {name!r} in the file",
        )
    return getattr(module, name)


def _import_file(path: Path) -> ModuleType:
    """The module of a file, under its own name, so that functions in it can be found again."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise BadFile("it cannot be imported", where=str(path), hint="give the path of a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except HeadraceError:
        raise
    except Exception as error:
        raise BadProgram(
            f"running it raised {type(error).__name__}: {error}",
            where=str(path),
            hint="run it with python to see where",
        ) from error
    return module


FORMATS = (
    Format(
        "python",
        "program",
        "a Python file that builds the program",
        suffixes=(".py",),
        read=load_python_program,
    ),
)
