"""The parts of a campaign: programs, grids and settings of its entries, and their digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.replan_policy import ReplanPolicy
from headrace.experiment.dataflow import fft, jacobi, matmul
from headrace.experiment.distribution import Distribution
from headrace.experiment.generate import SweepSpec, generate_sweep
from headrace.experiment.grids import ClusterSpec, GridSpec, SeriesSpec, generate_grid
from headrace.formats.campaign_toml import CampaignFile, Entry, Shape, Value
from headrace.formats.loading import load_grid, load_program
from headrace.model.behaviour import GridScript, pack
from headrace.model.errors import HeadraceError, UsageError
from headrace.model.graph import Graph
from headrace.model.platform import Platform
from headrace.model.program import Data, Program
from headrace.simulator.events.config import SimulationConfig

RULES = ("planning", "planning_fixed", "keep", "subset", "reduce", "replan")
_EXECUTION = {
    "order": "task_order",
    "link_order": "link_order",
    "routes": "routes",
    "ahead": "prefetch_depth",
    "steal": "steal",
    "duplicate": "duplicate",
    "replicate": "replicate",
}
"""Keys of a campaign file and the fields of `ExecutionPolicy` they set."""
_GRAPHS: dict[str, Callable[..., Program]] = {"jacobi": jacobi, "fft": fft, "matmul": matmul}


def make_program(entry: Entry, seed: int) -> Program:
    """The program of an entry; only generated sweeps depend on the seed."""
    try:
        if entry.file is not None:
            return load_program(entry.file)
        if entry.form == "sweep":
            return generate_sweep(sweep_spec(entry), seed, entry.name)
        program = _GRAPHS[entry.form](**cast(Mapping[str, Any], entry.options))
    except HeadraceError as error:
        raise error.at(f"application {entry.name!r}") from None
    program.name = entry.name
    return program


def make_grid(entry: Entry, seed: int) -> GridScript | Platform:
    """The grid of an entry; a generated one depends on the seed."""
    try:
        if entry.file is not None:
            return load_grid(entry.file)
        return generate_grid(grid_spec(entry), seed, entry.name)
    except HeadraceError as error:
        raise error.at(f"grid {entry.name!r}") from None


def sweep_spec(entry: Entry) -> SweepSpec:
    """The sweep specification of an entry."""
    return SweepSpec(**{key: _drawn(value) for key, value in entry.options.items()})


def grid_spec(entry: Entry) -> GridSpec:
    """The grid specification of an entry; by default the clusters of figure 11 of the parameter-sweep paper."""
    options: dict[str, Any] = dict(entry.options)
    if entry.clusters:
        options["clusters"] = tuple(
            ClusterSpec(**{key: _series(value) for key, value in cluster.items()})
            for cluster in entry.clusters
        )
    return GridSpec(**options)


def _drawn(value: Value) -> Any:
    return Distribution(cast(Any, value.name), value.a, value.b) if isinstance(value, Shape) else value


def _series(value: Value) -> Any:
    if not isinstance(value, Shape):
        return value
    if value.name in ("constant", "stable"):
        return SeriesSpec()
    return SeriesSpec(cast(Any, value.name), value.a, value.b)


def make_setting(campaign: CampaignFile, events: str, estimates: str, faults: str) -> SimulationConfig:
    """Simulation settings: planning events as S1, S1:60 (seconds), S2, S3 or once; the rest from the campaign."""
    name, _, interval = events.partition(":")
    try:
        seconds = float(interval) if interval else None
    except ValueError:
        raise UsageError(
            f"events are {events!r}", where=campaign.name, hint="use S1, S1:60 (every 60 s), S2, S3 or once"
        ) from None
    if interval and name == "once":
        raise UsageError(f"events are {events!r}", where=campaign.name, hint="write once without an interval")
    run: dict[str, Any] = dict(campaign.run)
    return SimulationConfig(
        policy=ReplanPolicy(
            events=cast(Any, name), interval=seconds, **{key: run[key] for key in RULES if key in run}
        ),
        execution=ExecutionPolicy(**{_EXECUTION[key]: run[key] for key in _EXECUTION if key in run}),
        estimates=estimates,
        faults=faults,
        error=float(run.get("error", 0.0)),
    )


def entry_digest(entry: Entry, what: str) -> str:
    """A digest that is equal for entries that give the same program or grid, whatever their names."""
    digest = hashlib.sha256()
    if entry.file is None:
        words = (entry.form, sorted(entry.options.items()), [sorted(c.items()) for c in entry.clusters])
        digest.update(json.dumps(words).encode())
    elif what == "application":
        program = make_program(entry, 0)
        for graph in (program.graph, program.real):
            _add_graph(digest, graph, program.data.values())
    else:
        _add_grid(digest, make_grid(entry, 0))
    return digest.hexdigest()


def _add_graph(digest: Any, graph: Graph, items: Iterable[Data]) -> None:
    digest.update(json.dumps([list(graph.kinds), list(graph.task_names), list(graph.item_names)]).encode())
    for array in (
        graph.work,
        graph.kind,
        graph.speed_class,
        graph.arch_speeds,
        graph.size,
        graph.unknown_size,
        graph.producer,
        graph.read_ptr,
        graph.reads,
        graph.result,
        graph.cores,
        graph.release,
        graph.deadline,
    ):
        digest.update(array.tobytes() + b"|")
    digest.update(
        repr(
            [
                (item.initial_locations, item.destinations)
                for item in items
                if item.initial_locations or item.destinations
            ]
        ).encode()
    )


def _add_grid(digest: Any, grid: GridScript | Platform) -> None:
    """The whole content of a grid: traces as numbers, the rest as text."""
    platform = grid if isinstance(grid, Platform) else grid.platform
    changes = () if isinstance(grid, Platform) else grid.changes
    traces = [host.trace for host in platform.hosts]
    links = [site.uplink_trace for site in platform.sites] + [link.trace for link in platform.links]
    behaviours = [change.behaviour for change in changes]
    for behaviour in (*traces, *links, *behaviours):
        series = () if behaviour is None else behaviour if isinstance(behaviour, tuple) else (behaviour,)
        for array in pack(series):
            digest.update(array.tobytes() + b"|")
    sites = [
        replace(site, uplink_trace=None, hosts=tuple(replace(h, trace=None) for h in site.hosts))
        for site in platform.sites
    ]
    bare = [replace(link, trace=None) for link in platform.links]
    events = [(change.time, change.what, change.name) for change in changes]
    words = (sites, bare, platform.contention, platform.origin, platform.routing, events)
    digest.update(repr(words).encode())
    if platform.pairs is not None:
        digest.update(platform.network.link_bandwidth.tobytes() + platform.network.route_latency.tobytes())
