"""Problems that fall apart into sites with small disks and a pool of all other hosts.

That is so if the links of each such site carry nothing but its own files. The links between the other places are taken
to be fast enough here; the plan that is assembled in the end keeps to them (see `assembly`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.arrays import Int64s
from headrace.model.graph import Bools, Floats, Ints
from headrace.planners.coschedule.instance import NONE, Instance
from headrace.planners.coschedule.relaxation import FAR, least_times, shortest
from headrace.planners.coschedule.site_records import SiteArrays, SiteChoice, new_choice

SLACK = 0.3
"""By how much the pool ends later than if it were never idle: a share of the mean time for the files of a job."""


MOST_JOBS, MOST_ENTRIES = 2500, 20_000_000
"""Jobs, and arcs times files, above which a problem is not divided into sites: a search changes too few of the jobs."""
CROWDED = 2.0
"""How many times as long as at best inputs are taken to need for the way to the place next to a small site."""


@dataclass(frozen=True, eq=False)
class Sites:
    """Hosts at sites with small disks, the other hosts, and the arcs between the places of the others."""

    small: Ints
    pool: Ints
    inner: Ints
    arrays: SiteArrays


def sites_of(instance: Instance) -> Sites | None:
    """The sites and the pool of a problem that falls apart; else None. O(arcs * (items + places^2))."""
    entries = len(instance.paths.arcs.tail) * len(instance.size)
    if instance.n > MOST_JOBS or entries > MOST_ENTRIES or not _is_plain(instance):
        return None
    places = instance.host_place
    limited = np.isfinite(instance.storage[instance.site[places]])
    small, pool = np.flatnonzero(limited), np.flatnonzero(~limited)
    if not len(small) or not len(pool) or len(np.unique(places[small])) < len(small):
        return None
    arcs = instance.paths.arcs
    at = np.isin(np.arange(instance.places), places[small])
    ends = at[arcs.tail].astype(np.int64) + at[arcs.head]
    if (ends > 1).any() or _keeps_files(instance, at) or not _has_own_links(instance, at):
        return None
    inner = np.flatnonzero(ends == 0).astype(np.int32)
    return Sites(
        small.astype(np.int32),
        pool.astype(np.int32),
        inner,
        _arrays(instance, small, pool, inner),
    )


def _is_plain(instance: Instance) -> bool:
    """Independent jobs of one core each, all from the beginning, on links that carry one transfer at a time."""
    graph, platform = instance.problem.graph, instance.problem.platform
    written = instance.destination[instance.writes]
    return bool(
        platform.contention == "fifo"
        and platform.network.store_and_forward
        and instance.problem.constraints is None
        and not instance.problem.since
        and not instance.problem.free_at
        and not instance.problem.link_free_at
        and not len(instance.waits)
        and (instance.source[instance.reads] != NONE).all()
        and (written != NONE).all()
        and (graph.cores == 1).all()
        and not instance.room[0].any()
        and not graph.release.any()
        and not np.isfinite(graph.deadline).any()
        and (np.diff(instance.paths.arcs.link_ptr) == 1).all()
    )


def _keeps_files(instance: Instance, at: Bools) -> bool:
    """Whether files lie at small sites in the beginning or at the end."""
    used = np.unique(np.concatenate((instance.source[instance.reads], instance.destination[instance.writes])))
    return any(bool(at[p]) for s in used.tolist() for p in instance.paths.sets[s])


def _has_own_links(instance: Instance, at: Bools) -> bool:
    """Whether each link at a small site leads to no place but this one and others that are not small."""
    arcs = instance.paths.arcs
    site = np.where(at[arcs.tail], arcs.tail, np.where(at[arcs.head], arcs.head, NONE))
    link = arcs.links[arcs.link_ptr[:-1]]
    return len({*zip(link.tolist(), site.tolist(), strict=True)}) == len(np.unique(link))


def _arrays(instance: Instance, small: Int64s, pool: Int64s, inner: Ints) -> SiteArrays:
    arcs, graph = instance.paths.arcs, instance.problem.graph
    into = [np.flatnonzero(arcs.head == p) for p in instance.host_place[small].tolist()]
    out = [np.flatnonzero(arcs.tail == p) for p in instance.host_place[small].tolist()]
    link = arcs.links[arcs.link_ptr[:-1]]
    line, lines = np.zeros(len(link), np.int32), np.zeros(len(small), np.int32)
    for s in range(len(small)):
        mine = np.concatenate((into[s], out[s]))
        own, line[mine] = np.unique(link[mine], return_inverse=True)
        lines[s] = len(own)
    released, onward = _distances(instance, inner)
    cores = instance.host_cores[pool]
    before, after = least_times(instance)
    waits = np.where(instance.can_run, before + after, np.inf)[:, pool].min(axis=1)
    return SiteArrays(
        seconds=np.ascontiguousarray(instance.seconds[:, small].T),
        cores=instance.host_cores[small],
        disk=instance.storage[instance.site[instance.host_place[small]]],
        read_ptr=instance.read_ptr,
        reads=instance.reads,
        write_ptr=instance.write_ptr,
        writes=instance.writes,
        reader_ptr=graph.reader_ptr,
        readers=graph.readers,
        size=instance.size,
        in_ptr=_pointers(into),
        in_arcs=np.concatenate(into).astype(np.int32),
        out_ptr=_pointers(out),
        out_arcs=np.concatenate(out).astype(np.int32),
        line=line,
        latency=arcs.latency,
        bandwidth=arcs.bandwidth,
        lines=lines,
        released=released,
        onward=onward,
        pool_seconds=1.0 / np.maximum(1e-300, (cores / instance.seconds[:, pool]).sum(axis=1)),
        pool_cores=float(cores.sum()),
        pool_slack=SLACK * float(waits[np.isfinite(waits)].mean()) if np.isfinite(waits).any() else 0.0,
    )


def _pointers(lists: list[Int64s]) -> Ints:
    return np.cumsum([0, *(len(listed) for listed in lists)]).astype(np.int32)


def _distances(instance: Instance, inner: Ints) -> tuple[Floats, Floats]:
    """[arcs, items] from the sources to the tail of an arc, and from its head to the destinations; -1 for inputs."""
    arcs, sets = instance.paths.arcs, instance.paths.sets
    closed = np.full(len(arcs.tail), FAR)
    closed[inner] = 0.0
    latency = shortest(instance, arcs.latency + closed)
    slowness = shortest(instance, 1.0 / arcs.bandwidth + closed)
    released = np.full((len(arcs.tail), len(instance.size)), np.inf)
    onward = released.copy()
    inputs, results = np.unique(instance.reads), instance.writes
    for s in np.unique(instance.source[inputs]).tolist():
        items, at = inputs[instance.source[inputs] == s], list(sets[s])
        far = latency[at].min(axis=0)[arcs.tail, None]
        seconds = far + slowness[at].min(axis=0)[arcs.tail, None] * instance.size[items]
        released[:, items] = np.where(far < FAR, CROWDED * seconds, np.inf)
    for s in np.unique(instance.destination[results]).tolist():
        items, at = results[instance.destination[results] == s], list(sets[s])
        far = latency[:, at].min(axis=1)[arcs.head, None]
        seconds = far + slowness[:, at].min(axis=1)[arcs.head, None] * instance.size[items]
        onward[:, items] = np.where(far < FAR, seconds, np.inf)
    onward[:, inputs] = -1.0
    return released, onward


def chosen_by(sites: Sites, share: Floats) -> SiteChoice:
    """Each job at the site of its largest share, the longest first, or in the pool: O(jobs * hosts)."""
    host = np.where(share > 0, share, -1.0).argmax(axis=1)
    choice = new_choice(len(sites.small), len(host))
    for s, h in enumerate(sites.small.tolist()):
        able = np.isfinite(sites.arrays.seconds[s]) & (host == h)
        mine = np.flatnonzero(able)
        mine = mine[np.argsort(-sites.arrays.seconds[s, mine], kind="stable")]
        choice.order[s, : len(mine)], choice.length[s] = mine, len(mine)
        choice.site[mine] = s
    return choice
