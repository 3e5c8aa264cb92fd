"""Whether the other end of an address expects TLS: to say so when a connection fails."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import urlsplit

_PATIENCE = 2.0
_PLAIN = (
    "WRONG_VERSION_NUMBER",
    "UNKNOWN_PROTOCOL",
    "RECORD_LAYER_FAILURE",
    "UNEXPECTED_EOF",
    "HTTP_REQUEST",
)
"""Reasons of a failed handshake that mean that the other end does not speak TLS."""


def speaks_tls(host: str, port: int) -> bool | None:
    """Whether a server there speaks TLS; None if nothing can be told, as when there is no server or it is silent.

    A scheduler of dask without TLS is not silent: it sends its greeting as soon as it is connected to.
    """
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent: only whether there is a handshake matters
    try:
        with socket.create_connection((host, port), _PATIENCE) as plain, context.wrap_socket(plain):
            return True
    except ssl.SSLError as error:
        return not any(reason in (error.reason or str(error)).upper() for reason in _PLAIN)
    except OSError:  # no answer in time is none either: a busy server may speak TLS
        return None


def mismatch(url: str) -> tuple[str, str] | None:
    """What is wrong if the address and the server disagree about TLS, and what to try; None if they do not."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 0
    found = speaks_tls(host, port)
    if parts.scheme == "tcp" and found:
        return "the scheduler there uses TLS, and the address says tcp", (
            f"use tls://{host}:{port} with --tls-ca, --tls-cert and --tls-key"
        )
    if parts.scheme == "tls" and found is False:
        return "the scheduler there does not use TLS, and the address says tls", (
            "start it with certificates (`headrace certificates FOLDER` makes them), or use tcp:// on its machine"
        )
    return None
