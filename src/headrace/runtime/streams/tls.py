"""TLS between copies, with the certificates of the cluster that they run on."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path

Certificates = Mapping[str, str]
"""`ca`, `cert` and `key`: paths of PEM files, or PEM text."""


def contexts(certificates: Certificates | None) -> tuple[ssl.SSLContext | None, ssl.SSLContext | None]:
    """The contexts for accepting and for dialing: both sides show a certificate of the same authority."""
    if certificates is None:
        return None, None
    accepting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    accepting.num_tickets = 0  # the dialing side reads credits only, and late
    dialing = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Certificates of clusters name no hosts: as in the engine, the authority decides.
    dialing.check_hostname = False
    for context in (accepting, dialing):
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_REQUIRED
        _load(context, certificates)
    return accepting, dialing


def _load(context: ssl.SSLContext, given: Certificates) -> None:
    if _is_text(given["ca"]):
        context.load_verify_locations(cadata=given["ca"])
    else:
        context.load_verify_locations(cafile=given["ca"])
    if not _is_text(given["cert"]):
        context.load_cert_chain(given["cert"], given.get("key") or None)
        return
    # The ssl module reads certificates from files only; this one is readable by its owner alone.
    file, path = tempfile.mkstemp(prefix="headrace-cert-")
    try:
        with os.fdopen(file, "w") as target:
            target.write(f"{given['cert']}\n{given.get('key') or ''}\n")
        context.load_cert_chain(path)
    finally:
        Path(path).unlink()


def _is_text(value: str) -> bool:
    return "-----BEGIN" in value
