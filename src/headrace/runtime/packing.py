"""Functions and values as bytes that are opaque to the engine.

They are pickled once on the client and unpickled where they are used, so the engine's scheduler need not be able
to import the user's code, and a function used by a thousand tasks is pickled once.
"""

from __future__ import annotations

import os
import pickle
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from headrace.model.errors import BadProgram


@dataclass(frozen=True, slots=True)
class Packed:
    """A pickled value to be sent to a worker."""

    payload: bytes


@contextmanager
def packer() -> Iterator[Callable[[object, str], bytes]]:
    """A function that pickles values: functions from standalone user files by value, from packages by name.

    Finding standalone files takes time linear in the number of loaded modules, once.

    >>> with packer() as pack:
    ...     unpack(pack([1, 2], "an example"))
    [1, 2]
    """
    with _loose_modules_by_value():
        yield _pack


def _pack(value: object, where: str) -> bytes:
    import cloudpickle  # type: ignore[import-untyped]

    try:
        return bytes(cloudpickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
    except Exception as error:  # pickling runs code of the value, which may raise anything
        raise BadProgram(
            f"{type(value).__name__} cannot be sent to a worker: {type(error).__name__}: {error}",
            where=where,
            hint="use functions and values that can be pickled",
        ) from error


def unpack(payload: bytes | memoryview, buffers: Iterable[memoryview] = ()) -> Any:
    """The value of a payload made by a `packer`. Only for payloads from the client of this run."""
    return pickle.loads(payload, buffers=buffers)


@lru_cache(maxsize=512)
def unpack_once(payload: bytes) -> Any:
    """Like `unpack`, but cached: returns the same object each time, for functions shared by tasks."""
    return unpack(payload)


@contextmanager
def _loose_modules_by_value() -> Iterator[None]:
    """Context in which modules that a worker could not import are pickled by value."""
    import cloudpickle

    before = cloudpickle.list_registry_pickle_by_value()
    loose = {m.__name__: m for m in list(sys.modules.values()) if _is_loose(m)}
    added = [module for name, module in loose.items() if name not in before]
    for module in added:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in added:
            cloudpickle.unregister_pickle_by_value(module)


def _is_loose(module: object) -> bool:
    """A single Python file outside the installation and outside any package."""
    if not isinstance(module, ModuleType) or module.__name__ == "__main__":
        return False  # the main module is pickled by value anyway
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or "." in module.__name__ or hasattr(module, "__path__"):
        return False
    return sys.modules.get(module.__name__) is module and _is_outside_installation(file)


@lru_cache(maxsize=4096)
def _is_outside_installation(file: str) -> bool:
    return file.endswith(".py") and not file.startswith(_installed())


@lru_cache(maxsize=1)
def _installed() -> tuple[str, ...]:
    """The folders of the installation, each with a slash at its end."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(str(Path(sysconfig.get_path(name))) + os.sep for name in names)
