"""Content of a deployment drawing: a cell per cluster and filter, and bands of flow between cells."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.model.deployment import Deployment, Placement


@dataclass(frozen=True, slots=True)
class Cell:
    """The copies of one filter in one cluster."""

    cluster: str
    filter: str
    placements: tuple[Placement, ...]
    limits: bool
    """Whether its hosts or their ports limit the throughput."""

    @property
    def copies(self) -> int:
        return sum(p.copies for p in self.placements)

    @property
    def rate(self) -> float:
        return sum(p.rate for p in self.placements)


@dataclass(frozen=True, slots=True)
class Band:
    """The total flow from a filter's copies in one cluster to another filter's copies in a cluster."""

    source: tuple[str, str]
    target: tuple[str, str]
    """(cluster, filter)."""
    rate: float
    limits: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A cluster in use, with its cells."""

    cluster: str
    hosts: int
    used: int
    limits: bool
    cells: dict[str, Cell] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Content:
    """The whole drawing: rows in platform order, columns of filters by distance from the reader."""

    rows: tuple[Row, ...]
    columns: tuple[tuple[str, ...], ...]
    bands: tuple[Band, ...]
    idle: tuple[tuple[str, int], ...]
    """Unused clusters and their numbers of hosts."""


def content(deployment: Deployment) -> Content:
    """Gather placements and flows by cluster and filter: O(placements + flows)."""
    problem = deployment.problem
    busy_hosts = set(deployment.hosts_used)
    marked = _Marks(deployment)
    by_cell: dict[tuple[str, str], list[Placement]] = {}
    for placement in deployment.placements:
        by_cell.setdefault((problem.cluster[placement.host], placement.filter), []).append(placement)
    rows: list[Row] = []
    idle: list[tuple[str, int]] = []
    for site in problem.platform.sites:
        used = sum(host.name in busy_hosts for host in site.hosts)
        if not used:
            idle += [(site.name, len(site.hosts))] if site.hosts else []
            continue
        row = Row(site.name, len(site.hosts), used, site.name in marked.segments)
        for f in problem.pipeline.order:
            if (site.name, f.name) in by_cell:
                placed = tuple(by_cell[site.name, f.name])
                row.cells[f.name] = Cell(site.name, f.name, placed, f.name in marked.filters)
        rows.append(row)
    return Content(tuple(rows), _columns(deployment), _bands(deployment, marked), tuple(idle))


class _Marks:
    """The limits of a deployment, by kind of resource."""

    def __init__(self, deployment: Deployment) -> None:
        names: dict[str, set[str]] = {}
        for limit in deployment.limits:
            names.setdefault(limit.kind, set()).add(limit.name)
        self.filters = names.get("reader", set()) | names.get("cpu", set()) | names.get("port", set())
        self.links = names.get("link", set())
        self.segments = {name.removeprefix("segment of ") for name in names.get("segment", set())}

    def between(self, source: str, target: str) -> bool:
        """Whether the link, or an uplink, between two clusters is a limit."""
        names = (f"{source} -> {target}", f"{target} -> {source}", f"{source} uplink", f"{target} uplink")
        return source != target and any(name in self.links for name in names)


def _columns(deployment: Deployment) -> tuple[tuple[str, ...], ...]:
    """Filters by the length of the longest path from the reader."""
    pipeline = deployment.problem.pipeline
    depth: dict[str, int] = {}
    for f in pipeline.order:
        depth[f.name] = max((depth[s.source] + 1 for s in pipeline.streams if s.target == f.name), default=0)
    return tuple(
        tuple(f.name for f in pipeline.order if depth[f.name] == level)
        for level in range(max(depth.values()) + 1)
    )


def _bands(deployment: Deployment, marked: _Marks) -> tuple[Band, ...]:
    cluster = deployment.problem.cluster
    rates: dict[tuple[tuple[str, str], tuple[str, str]], float] = {}
    for flow in deployment.flows:
        ends = ((cluster[flow.source], flow.source_filter), (cluster[flow.target], flow.target_filter))
        rates[ends] = rates.get(ends, 0.0) + flow.rate
    return tuple(
        Band(source, target, rate, marked.between(source[0], target[0]))
        for (source, target), rate in rates.items()
        if rate > 0
    )
