"""Hosts on which workers are started over ssh: `headrace run --on ssh://hosts.toml`.

The file belongs to the user, like the configuration of ssh: it names a program to start on each host.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.formats.files import read_file
from headrace.formats.shapes import shorten
from headrace.formats.tables import Table
from headrace.formats.toml_text import parse_toml

MAX_BYTES = 1_000_000
MAX_HOSTS = 1000
_SHARED_KEYS = ("python", "port", "identity", "config", "workers", "threads", "memory", "folder")
_ADDRESS = re.compile(r"[\w.:%@\[\]-]++")


@dataclass(frozen=True, slots=True)
class SshHost:
    """One machine that is reached by ssh, and the workers to start there."""

    name: str
    address: str
    """As `ssh` takes it: a name or address, with `user@` before it if that differs."""
    python: str = "python3"
    """The Python there that has headrace installed."""
    port: int | None = None
    identity: Path | None = None
    config: Path | None = None
    """Another configuration file of ssh."""
    workers: int = 1
    threads: int | None = None
    """Tasks that a worker executes at once; None: the cores there, divided among the workers."""
    memory: int | None = None
    """Bytes per worker; None: the memory there, divided among the workers."""
    folder: str | None = None
    """Where workers keep their files there; None: the folder for temporary files."""

    @property
    def worker_names(self) -> tuple[str, ...]:
        """
        >>> SshHost("a", "a").worker_names, SshHost("a", "a", workers=2).worker_names
        (('a',), ('a-1', 'a-2'))
        """
        if self.workers == 1:
            return (self.name,)
        return tuple(f"{self.name}-{number}" for number in range(1, self.workers + 1))


@dataclass(frozen=True, slots=True)
class SshHosts:
    """The contents of a hosts file."""

    file: str
    hosts: tuple[SshHost, ...]
    listen: str | None = None
    """The address of this machine at which the hosts reach it; None: the one from which it reaches the first host."""
    listen_port: int = 0
    """0: any free port."""
    certificates: Path | None = None
    """The folder that `headrace certificates` made; None: new certificates for each run."""


def read_hosts(path: str | Path) -> SshHosts:
    """Read a hosts file.

    >>> import tempfile
    >>> text = '[[host]]\\nname = "big"\\naddress = "me@big.example.org"\\nworkers = 2\\n'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "hosts.toml").write_text(text)
    ...     read_hosts(Path(folder, "hosts.toml")).hosts[0].worker_names
    ('big-1', 'big-2')
    """
    where = str(path)
    values = parse_toml(read_file(path, limit=MAX_BYTES), where)
    top = Table(values, where)
    top.require_known(("listen", "listen_port", "certificates", "host", *_SHARED_KEYS))
    _require_printable(top)
    entries = top.tables("host", "host", _label)
    if not 1 <= len(entries) <= MAX_HOSTS:
        raise top.wrong(f"it has {len(entries)} hosts", f"write 1 to {MAX_HOSTS} entries [[host]]")
    shared = {key: values[key] for key in _SHARED_KEYS if key in values}
    base = Path(path).parent
    hosts = tuple(_host(entry, shared, base) for entry in entries)
    _require_distinct(top, hosts)
    return SshHosts(
        where,
        hosts,
        top.text("listen", None),
        top.whole("listen_port", 0, least=0, most=65535),
        _path(top.text("certificates", None), base),
    )


def _label(entry: dict[str, Any]) -> str:
    return shorten(entry["name"]) if "name" in entry else ""


def _host(entry: Table, shared: dict[str, Any], base: Path) -> SshHost:
    entry.require_known(("name", "address", *_SHARED_KEYS))
    _require_printable(entry)
    name = entry.with_values({"name": entry.required("name")}).text("name", "")
    table = entry.with_values(shared | dict(entry.values))
    address = table.text("address", name)
    if not _ADDRESS.fullmatch(address) or address.startswith("-"):
        raise table.bad_value("address", address, 'write it as for ssh, such as "me@big.example.org"')
    memory = table.quantity("memory", "size", None)
    return SshHost(
        name,
        address,
        table.text("python", "python3"),
        table.whole("port", 22, most=65535) if "port" in table.values else None,
        _path(table.text("identity", None), base),
        _path(table.text("config", None), base),
        table.whole("workers", 1, most=1000),
        table.whole("threads", 1, most=10_000) if "threads" in table.values else None,
        None if memory is None else int(memory),
        table.text("folder", None),
    )


def _path(text: str | None, base: Path) -> Path | None:
    """A path on this machine, relative to the folder of the hosts file."""
    # Not Path.expanduser, which fails for users that do not exist.
    return None if text is None else base / os.path.expanduser(text)  # noqa: PTH111


def _require_printable(table: Table) -> None:
    for key, value in table.values.items():
        if isinstance(value, str) and not value.isprintable():
            raise table.bad_value(key, value, "write it without control characters")


def _require_distinct(top: Table, hosts: tuple[SshHost, ...]) -> None:
    seen: set[str] = set()
    for name in (name for host in hosts for name in host.worker_names):
        if name in seen:
            raise top.wrong(f"two workers are called {name!r}", "give each host its own name")
        seen.add(name)
