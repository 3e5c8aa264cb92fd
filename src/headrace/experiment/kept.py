"""A cache of planning results, keyed by everything they depend on."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from headrace.model.errors import BadFile
from headrace.model.graph import Graph
from headrace.model.platform import Platform
from headrace.rules.tree import RuleSet


class Kept(NamedTuple):
    """The cached result of a plan."""

    makespan: float
    bound: float
    seconds: float
    bound_name: str = ""


class KeptResults:
    """The cache file in the record's folder ($HEADRACE_HOME or ./.headrace)."""

    def __init__(self, folder: Path | None = None) -> None:
        table = "bounded (key TEXT PRIMARY KEY, makespan REAL, bound REAL, seconds REAL, bound_name TEXT)"
        self._connection = open_kept(folder, "compared.sqlite", table)

    def get(self, key: str) -> Kept | None:
        found = self._connection.execute(
            "SELECT makespan, bound, seconds, bound_name FROM bounded WHERE key = ?", (key,)
        ).fetchone()
        return Kept(*found) if found else None

    def put(self, key: str, kept: Kept) -> None:
        with self._connection:
            self._connection.execute("INSERT OR REPLACE INTO bounded VALUES (?, ?, ?, ?, ?)", (key, *kept))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()


def open_kept(folder: Path | None, file: str, table: str) -> sqlite3.Connection:
    """Open a cache file with one table in the record's folder."""
    path = Path(folder or os.environ.get("HEADRACE_HOME") or ".headrace").absolute() / file
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=30)
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table}")
    except (OSError, sqlite3.Error) as error:
        raise BadFile(
            f"cached results cannot be read: {error}",
            where=str(path),
            hint="move the file away, or set HEADRACE_HOME",
        ) from None
    return connection


def key_of(
    graph: Graph,
    platform: Platform,
    scheduler: str,
    options: dict[str, object],
    seed: int,
    rules: RuleSet | None = None,
) -> str:
    """A key that is equal for calls that must give the same plan."""
    digest = hashlib.sha256()
    for array in (
        graph.work,
        graph.speed_class,
        graph.size,
        graph.unknown_size,
        graph.producer,
        graph.read_ptr,
        graph.reads,
        graph.result,
        graph.cores,
        graph.release,
        graph.deadline,
        graph.initial_locations.ptr,
        graph.initial_locations.index,
        graph.destinations.ptr,
        graph.destinations.index,
    ):
        digest.update(np.ascontiguousarray(array).tobytes() + b"|")
    network = platform.network
    for array in (
        platform.rates(graph),
        np.array([h.cores for h in platform.hosts]),
        network.host_place,
        network.zone,
        network.site,
        network.storage,
        network.port,
        network.link_bandwidth,
        network.route_ptr,
        network.route_links,
        network.route_bandwidth,
        network.route_latency,
    ):
        digest.update(np.ascontiguousarray(array).tobytes() + b"|")
    words = (
        platform.contention,
        platform.routing,
        network.origin,
        network.place_names,
        graph.initial_locations.names,
        graph.destinations.names,
        scheduler,
        file_digest(scheduler),
        sorted(options.items()),
        seed,
        version("headrace"),
    )
    digest.update(repr(words).encode())
    if rules is not None:
        digest.update(repr(_seen_by_rules(rules, graph, platform)).encode())
    return digest.hexdigest()


def _seen_by_rules(rules: RuleSet, graph: Graph, platform: Platform) -> tuple[object, ...]:
    """What a plan under rules depends on besides what all plans depend on: names, labels and prices."""
    labels = {
        name: (column.tasks.tolist(), list(column.values)) for name, column in sorted(graph.labels.items())
    }
    named = list(graph.task_names), list(graph.item_names), list(graph.kinds), graph.kind.tolist()
    return rules.rules, *named, labels, [(site.name, site.hosts) for site in platform.sites]


def file_digest(scheduler: str) -> str:
    """A digest of a user-defined scheduler's file, so that a changed file invalidates cached results."""
    path, colon, _ = scheduler.partition(".py:")
    return hashlib.sha256(Path(f"{path}.py").read_bytes()).hexdigest() if colon else ""
