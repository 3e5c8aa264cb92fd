"""Connections of the engine over Unix sockets: for the processes of one user on one machine.

Addresses are `unix://127.0.0.1/FOLDER:NUMBER`; a process listens at the file NUMBER in FOLDER. The folder must belong
to this user and be closed to all others, so nobody else can connect, whatever the mode of the socket itself. Where the
system tells who is at the other end (Linux), that is checked too, on both sides. Nothing has to be encrypted, since
nothing leaves the kernel.

Uses the engine's communication layer, which is documented but not public: see `distributed.comm`.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import dask
from distributed.comm.addressing import parse_host_port
from distributed.comm.core import BaseListener, Comm, CommClosedError, Connector, FatalCommClosedError
from distributed.comm.registry import Backend, backends
from distributed.comm.tcp import MAX_BUFFER_SIZE, TCP
from tornado.iostream import IOStream
from tornado.tcpserver import TCPServer

from headrace.runtime.transport import MACHINE, SCHEME

_BUFFER_BYTES = 1 << 20
_MOST_NUMBERS = 10_000
_CREDENTIALS = struct.Struct("3i")


def register_sockets() -> None:
    """Make `unix://` known to the engine in this process."""
    backends.setdefault(SCHEME, SocketBackend())


class SocketComm(TCP):  # type: ignore[misc]
    """A connection. Messages are framed as over TCP; what TCP sets on its sockets does not exist here."""

    def __init__(self, stream: IOStream, local: str, peer: str, deserialize: bool = True) -> None:
        self._closed = False
        Comm.__init__(self, deserialize=deserialize)
        self._local_addr = local
        self._peer_addr = peer
        self.stream = stream
        self._extra: dict[str, Any] = {}
        self._finalizer = weakref.finalize(self, self._get_finalizer())
        self._finalizer.atexit = False
        stream.set_close_callback(partial(_note_closed, weakref.ref(self)))


def _note_closed(comm: weakref.ref[SocketComm]) -> None:
    found = comm()
    if found is not None:
        found._closed = True


class SocketConnector(Connector):  # type: ignore[misc]
    """Connects to an address; `connection_args` are for other kinds of connections."""

    async def connect(self, address: str, deserialize: bool = True, **connection_args: Any) -> SocketComm:
        folder, number = _parsed(address)
        try:
            _require_private(folder)
        except PermissionError as error:
            raise FatalCommClosedError(str(error)) from None
        made = _socket()
        try:
            # It answers at once, or refuses: a full queue of the listener is EAGAIN, and the engine tries again.
            made.connect(f"{folder}/{number}")
            _require_own(made)
        except OSError as error:
            made.close()
            raise CommClosedError(f"{address}: {error}") from error
        stream = IOStream(made, max_buffer_size=MAX_BUFFER_SIZE)
        return SocketComm(stream, _address(folder, os.getpid()), f"{SCHEME}://{address}", deserialize)


class SocketListener(BaseListener):  # type: ignore[misc]
    """Listens in a folder under a number; number 0 is replaced by this process's id or the next one that is free."""

    prefix = f"{SCHEME}://"

    def __init__(
        self,
        address: str,
        comm_handler: Callable[[Any], Any],
        deserialize: bool = True,
        allow_offload: bool = True,
        **connection_args: Any,
    ) -> None:
        super().__init__()
        self.folder, self.number = _parsed(address)
        self.comm_handler = comm_handler
        self.deserialize = deserialize
        self.allow_offload = allow_offload
        self.server: TCPServer | None = None

    async def start(self) -> None:
        _require_private(self.folder)
        listening = _socket()
        try:
            self.number = _bind(listening, self.folder, self.number)
            listening.listen(int(dask.config.get("distributed.comm.socket-backlog")))
        except BaseException:
            listening.close()
            raise
        self.server = TCPServer(max_buffer_size=MAX_BUFFER_SIZE)
        self.server.handle_stream = self._accepted  # type: ignore[assignment,method-assign]
        self.server.add_sockets([listening])

    def stop(self) -> None:
        server, self.server = self.server, None
        if server is not None:
            server.stop()
            with suppress(OSError):
                Path(self.folder, str(self.number)).unlink()

    async def _accepted(self, stream: IOStream, _: Any) -> None:
        try:
            peer = _require_own(stream.socket)
        except OSError:
            stream.close()
            return
        if self.server is None:  # stopped meanwhile: the other end must not wait for an answer
            stream.close()
            return
        comm = SocketComm(stream, self.contact_address, _address(self.folder, peer), self.deserialize)
        comm.allow_offload = self.allow_offload
        try:
            await self.on_connection(comm)
        except CommClosedError:
            return
        await self.comm_handler(comm)

    @property
    def listen_address(self) -> str:
        return _address(self.folder, self.number)

    @property
    def contact_address(self) -> str:
        return self.listen_address


class SocketBackend(Backend):  # type: ignore[misc]
    """What the engine asks about `unix://` addresses."""

    def get_connector(self) -> SocketConnector:
        return SocketConnector()

    def get_listener(
        self, loc: str, handle_comm: Callable[[Any], Any], deserialize: bool, **connection_args: Any
    ) -> SocketListener:
        return SocketListener(loc, handle_comm, deserialize, **connection_args)

    def get_address_host(self, loc: str) -> str:
        return MACHINE

    def get_address_host_port(self, loc: str) -> tuple[str, int]:
        return MACHINE, _parsed(loc)[1]

    def resolve_address(self, loc: str) -> str:
        return loc

    def get_local_address_for(self, loc: str) -> str:
        return f"{MACHINE}{_parsed(loc)[0]}:0"


def _parsed(location: str) -> tuple[str, int]:
    """
    >>> _parsed("127.0.0.1/tmp/x:7")
    ('/tmp/x', 7)
    """
    host, number = parse_host_port(location, 0)
    machine, slash, rest = host.partition("/")
    if machine != MACHINE or not slash or number < 0:
        raise ValueError(f"{location!r} is not the address of a Unix socket")
    return f"/{rest}", number


def _address(folder: str, number: int) -> str:
    return f"{SCHEME}://{MACHINE}{folder}:{number}"


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.setblocking(False)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        made.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
    return made


def _bind(listening: socket.socket, folder: str, number: int) -> int:
    """Bind to a number, or to a free one if it is 0; returns it. A file that is there is never replaced."""
    numbers = [number] if number else range(os.getpid(), os.getpid() + _MOST_NUMBERS)
    for wanted in numbers:
        try:
            listening.bind(f"{folder}/{wanted}")
        except OSError as error:
            if error.errno != errno.EADDRINUSE or wanted == numbers[-1]:
                raise
        else:
            return wanted
    raise AssertionError


def _require_private(folder: str) -> None:
    """Refuse a folder in which others could listen or connect."""
    about = os.lstat(folder)
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
        raise PermissionError(errno.EACCES, "not a folder for this user alone", folder)


def _require_own(connected: socket.socket) -> int:
    """Refuse a process of another user at the other end; returns its id, or 0 where the system does not tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0
    told = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, user, _ = _CREDENTIALS.unpack(told)
    if user != os.geteuid():
        raise PermissionError(errno.EACCES, f"the other end belongs to user {user}")
    return int(pid)
