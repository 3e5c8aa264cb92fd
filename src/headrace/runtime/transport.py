"""How the processes of a local cluster are connected: Unix sockets in a private folder, or TLS.

Does not load the engine; `dask_sockets` makes it use these sockets.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from headrace.model.errors import UsageError

TransportKind: TypeAlias = Literal["auto", "unix", "tls"]
SCHEME = "unix"
MACHINE = "127.0.0.1"
"""The host part of all addresses of sockets: it tells that all of them are on one machine."""
_PREFIX = "headrace-workers-"
_LONGEST_PATH = 100
"""Bytes of a socket's path: systems allow 103 or 107."""
_NUMBER_BYTES = 12


@dataclass(frozen=True, slots=True, repr=False)
class Transport:
    """How the processes of a local cluster are connected."""

    folder: str
    """A folder that only this user can enter."""
    host: str
    """What the engine listens at."""
    security: dict[str, str] = field(default_factory=dict)
    """Certificates, by the parameters of `distributed.Security`; none for Unix sockets."""


def open_transport(kind: TransportKind = "auto") -> Transport:
    """Unix sockets in a new folder or, where there are none, TLS on the loopback interface with new certificates."""
    folder = _private_folder(lambda path: kind == "tls" or has_sockets(path))
    if kind != "tls" and has_sockets(folder) and _can_bind(folder):
        return Transport(folder, host_of(folder))
    if kind == "unix":
        shutil.rmtree(folder, ignore_errors=True)
        raise UsageError(f"no Unix socket can be made in {folder!r}", hint="set TMPDIR to a short path")
    from headrace.runtime.certificates import local_material

    return Transport(folder, "tls://127.0.0.1", local_material())


def _private_folder(is_good: Callable[[str], bool]) -> str:
    """A new folder of mode 0700 in the first place where its path is good, or else in the usual place."""
    for parent in (tempfile.gettempdir(), os.environ.get("XDG_RUNTIME_DIR", ""), "/tmp"):
        if parent and is_good(f"{parent}/{_PREFIX}{8 * 'x'}"):
            with suppress(OSError):
                return tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
    return tempfile.mkdtemp(prefix=_PREFIX)


def has_sockets(folder: str | Path) -> bool:
    """Whether this system has Unix sockets, and the folder's path is short and plain enough for them.

    >>> has_sockets("/tmp/x"), has_sockets("/tmp/" + 100 * "x"), has_sockets("/tmp/a:b")
    (True, False, False)
    """
    path = os.fspath(folder)
    plain = path.isascii() and not set(path) & set(":[]?#@")
    return hasattr(socket, "AF_UNIX") and plain and len(path) + _NUMBER_BYTES <= _LONGEST_PATH


def _can_bind(folder: str) -> bool:
    """Not every file system can hold sockets."""
    path = f"{folder}/trial"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
            made.bind(path)
        Path(path).unlink()
    except OSError:
        return False
    return True


def host_of(folder: str | Path) -> str:
    """What to give the engine as the host of a process that listens in this folder.

    >>> host_of("/tmp/x")
    'unix://127.0.0.1/tmp/x'
    """
    return f"{SCHEME}://{MACHINE}{Path(folder).absolute()}"
