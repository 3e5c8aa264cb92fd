"""Frames on a connection between two copies, with TLS or without, and how the two sides authenticate.

A frame is a header and, for data, the bytes themselves. Data flows from the connecting side to the listening
side; credits flow back. Sockets do not block: whoever uses a connection waits with `select`.
"""

from __future__ import annotations

import hmac
import os
import socket
import ssl
import struct
import threading

from headrace.model.errors import HeadraceError

HEADER = struct.Struct("!BxxxIQ")
"""Kind, unit of work, and a number: the bytes that follow, or the buffers of a unit that ends."""
DATA, UNIT_END, RUN_END = 1, 2, 3
CREDIT = struct.Struct("!I")
"""How many buffers have been taken; the only thing the listening side sends."""
HELLO_SECONDS = 20.0
"""Time for connecting and authenticating."""
PATIENCE = 60.0
_NONCE = 32
_IDENTITY = struct.Struct("!II")


class LinkLost(HeadraceError):
    """A connection between two copies broke."""


class Connection:
    """One connection. A lock makes TLS usable by a thread that reads and one that writes; calls are short."""

    def __init__(self, raw: socket.socket, patience: float = PATIENCE) -> None:
        """`patience`: seconds after which a peer whose machine does not answer is lost, whoever is to send."""
        self.socket = raw
        self.tls = raw if isinstance(raw, ssl.SSLSocket) else None
        self._lock = threading.Lock()
        raw.setblocking(False)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (
            ("TCP_USER_TIMEOUT", patience * 1000),
            ("TCP_KEEPIDLE", patience / 2),
            ("TCP_KEEPINTVL", patience / 6),
            ("TCP_KEEPCNT", 3),
        ):
            if hasattr(socket, option):  # not every system has them
                raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), max(1, int(value)))

    def fileno(self) -> int:
        return self.socket.fileno()

    def pending(self) -> bool:
        """Whether decrypted data waits here, which `select` does not see."""
        return self.tls is not None and self.tls.pending() > 0

    def send(self, parts: list[memoryview]) -> int:
        """Send as much as fits now; returns the number of bytes, 0 if none."""
        try:
            if self.tls is None:
                return self.socket.sendmsg(parts)
            with self._lock:
                return self.tls.send(parts[0])
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0
        except OSError as error:
            raise LinkLost(f"sending failed: {error}") from error

    def push(self, views: list[memoryview]) -> None:
        """Send views in order as far as they fit now; what is left stays in the list."""
        while views:
            sent = self.send(views)
            if not sent:
                return
            while views and sent >= len(views[0]):
                sent -= len(views.pop(0))
            if sent:
                views[0] = views[0][sent:]

    def receive(self, most: int) -> bytes | None:
        """At most this many bytes; None if there are none now."""
        try:
            if self.tls is None:
                data = self.socket.recv(most)
            else:
                with self._lock:
                    data = self.tls.recv(most)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        except OSError as error:
            raise LinkLost(f"receiving failed: {error}") from error
        if not data:
            raise LinkLost("the other side closed the connection")
        return data

    def close(self) -> None:
        self.socket.close()


def listen(host: str) -> socket.socket:
    """A listening socket on a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = socket.create_server((host, 0), family=family, backlog=512)
    server.settimeout(HELLO_SECONDS)
    return server


def dial(
    address: tuple[str, int],
    token: bytes,
    identity: tuple[int, int],
    tls: ssl.SSLContext | None,
    patience: float = PATIENCE,
) -> Connection:
    """Connect to a copy and prove to each other that both belong to this run; the token itself is never sent."""
    try:
        raw = socket.create_connection(address, timeout=HELLO_SECONDS)
        if tls is not None:
            raw = tls.wrap_socket(raw)
        mine = os.urandom(_NONCE)
        theirs = _exactly(raw, _NONCE)
        who = _IDENTITY.pack(*identity)
        raw.sendall(who + mine + _proof(token, b"dial", theirs, mine, who))
        if not hmac.compare_digest(_exactly(raw, 32), _proof(token, b"accept", mine, theirs, who)):
            raise LinkLost("it does not belong to this run")
    except OSError as error:
        raise LinkLost(f"cannot connect to {address[0]}:{address[1]}: {error}") from error
    return Connection(raw, patience)


def accept(
    server: socket.socket, token: bytes, tls: ssl.SSLContext | None, patience: float = PATIENCE
) -> tuple[tuple[int, int], Connection] | None:
    """The next connection and who it is; None if the other side could not authenticate.

    Raises TimeoutError when nobody connects in time.
    """
    raw, _ = server.accept()
    raw.settimeout(HELLO_SECONDS)
    try:
        if tls is not None:
            raw = tls.wrap_socket(raw, server_side=True)
        mine = os.urandom(_NONCE)
        raw.sendall(mine)
        hello = _exactly(raw, _IDENTITY.size + _NONCE + 32)
        who, theirs, proof = hello[:8], hello[8:40], hello[40:]
        if not hmac.compare_digest(proof, _proof(token, b"dial", mine, theirs, who)):
            raw.close()
            return None
        raw.sendall(_proof(token, b"accept", theirs, mine, who))
    except OSError:
        raw.close()
        return None
    source, stream = _IDENTITY.unpack(who)
    return (source, stream), Connection(raw, patience)


def _proof(token: bytes, role: bytes, *parts: bytes) -> bytes:
    return hmac.digest(token, role + b"".join(parts), "sha256")


def _exactly(raw: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = raw.recv(count - len(data))
        if not part:
            raise ConnectionError("closed while authenticating")
        data += part
    return data
