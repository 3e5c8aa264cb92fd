"""Values between tasks: read-only for whoever reads them, and pickled where an error can be told.

The engine pickles a value when it moves and unpickles it when it arrives, and waits for ever if either fails. A
`Sealed` value pickles itself and is unpickled by its reader, so that both failures belong to a task.

Numbers, text, bytes and numpy arrays pass as they are: they can always be moved, and arrays are made read-only without
copying them. All else is sealed. Each reader gets its own object, made from one pickle whose large buffers are shared
and read-only; a reader that changes it changes nothing for others. A value that cannot be pickled is shared as it is
by the readers in its own process.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.model.errors import TaskFailed
from headrace.runtime.files import FileData, StagedFile
from headrace.runtime.packing import Packed

_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, FileData, StagedFile, Packed})
READ_ONLY_HINT = "inputs are read-only: change a copy, such as x = x.copy() or x = bytearray(x)"
_TELLTALE = ("read-only", "'bytes' object does not support item", "'memoryview' object")


class Sealed:
    """A value of any type, as an output of a task.

    >>> value = seal({"mean": [1, 2]}, "t", "x")
    >>> mine, yours = unseal(value), unseal(value)
    >>> mine["mean"].append(3)
    >>> yours
    {'mean': [1, 2]}
    """

    __slots__ = ("__weakref__", "_buffers", "_lock", "_payload", "_value", "item", "size", "task")

    def __init__(self, value: Any, task: str, item: str, size: int) -> None:
        self.task = task
        self.item = item
        self.size = size
        self._value = value
        self._payload: bytes | None = None
        self._buffers: Sequence[Any] = ()
        self._lock = threading.Lock()

    def open(self) -> Any:
        """The value, for one reader."""
        with self._lock:
            try:
                self.pickle_now()
            except Exception:  # pickling runs code of the value, which may raise anything
                return self._value
            payload, buffers = self._payload, self._buffers
        assert payload is not None
        try:
            return pickle.loads(payload, buffers=[memoryview(b).toreadonly() for b in buffers])
        except Exception as error:
            raise TaskFailed(
                f"item {self.item!r} of task {self.task!r} cannot be unpickled: {_told(error)}",
                hint="return a value that can be pickled and unpickled",
            ) from None

    def pickle_now(self) -> None:
        """Replace the value by its pickle; the large buffers in it are not copied. Raises what pickling raises."""
        if self._payload is None:
            from distributed.protocol.pickle import dumps

            buffers: list[pickle.PickleBuffer] = []
            self._payload = dumps(self._value, buffer_callback=buffers.append, protocol=5)
            self._buffers = [buffer.raw() for buffer in buffers]
            self._value = None

    def parts(self) -> list[Any]:
        """The pickle of the value and its large buffers. Raises what pickling raises."""
        with self._lock:
            self.pickle_now()
            return [self._payload, *self._buffers]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        with self._lock:
            try:
                self.pickle_now()
            except Exception as error:
                kind = type(self._value).__name__
                return Unsendable, (self.task, self.item, kind, _told(error))
            buffers = tuple(map(pickle.PickleBuffer, self._buffers))
            if protocol < 5:
                buffers = tuple(bytes(buffer) for buffer in buffers)  # type: ignore[misc]
        return _arrived, (self.task, self.item, self.size, self._payload, buffers)

    def __sizeof__(self) -> int:
        return 200 + self.size


class Unsendable:
    """What arrives in place of a value that could not be pickled."""

    def __init__(self, task: str, item: str, kind: str, problem: str) -> None:
        self.task = task
        self.item = item
        self.kind = kind
        self.problem = problem

    def open(self) -> Any:
        raise TaskFailed(
            f"item {self.item!r} of task {self.task!r}, a {self.kind}, cannot be sent to another process:"
            f" {self.problem}",
            hint="return a value that can be pickled",
        )


def _arrived(task: str, item: str, size: int, payload: bytes, buffers: Sequence[Any]) -> Sealed:
    made = Sealed(None, task, item, size)
    made._payload, made._buffers = payload, buffers
    return made


def seal(value: Any, task: str, item: str, size: int = 0) -> Any:
    """An output of a task in the form in which the engine keeps it.

    >>> array = seal(np.zeros(2), "t", "x")
    >>> array.flags.writeable, type(seal(bytearray(b"x"), "t", "x")), type(seal([1], "t", "x")).__name__
    (False, <class 'bytes'>, 'Sealed')
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is np.ndarray and not value.dtype.hasobject:
        return _read_only(value)
    if kind is bytearray:
        return bytes(value)
    if kind is memoryview:
        return value.toreadonly()
    return Sealed(value, task, item, size)


def unseal(value: Any) -> Any:
    """The value as a reader sees it; raises TaskFailed if it could not be moved or unpickled.

    >>> unseal(seal([1], "t", "x")), unseal(3)
    ([1], 3)
    """
    if isinstance(value, Sealed | Unsendable):
        return value.open()
    kind = type(value)
    if kind is np.ndarray:
        return _read_only(value)
    if kind is bytearray:
        return bytes(value)
    if kind is memoryview:
        return value.toreadonly()
    return value


def hint_for(error: BaseException) -> str:
    """A hint if a task failed because it tried to change an input.

    >>> hint_for(ValueError("output array is read-only"))[:20], hint_for(ValueError("other"))
    ('inputs are read-only', '')
    """
    if isinstance(error, ValueError | TypeError) and any(part in _text(error) for part in _TELLTALE):
        return READ_ONLY_HINT
    return ""


def safe_text(text: str) -> str:
    """Text that every protocol and file accepts: lone surrogates are written as escapes.

    >>> safe_text("broken \\ud800")
    'broken \\\\ud800'
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _read_only(array: Any) -> Any:
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an error of the user's own class may not be able to say what it is
        return ""


def _told(error: BaseException) -> str:
    return safe_text(f"{type(error).__name__}: {_text(error)}"[:1000])
