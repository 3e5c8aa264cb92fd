"""Match the hosts of a platform file with the workers of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.model.errors import BadPlatform
from headrace.model.platform import Platform
from headrace.runtime.network_probe import machine_of

_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker of a cluster."""

    name: str
    address: str
    threads: int = 1


def match_hosts(platform: Platform, workers: Sequence[Worker]) -> Platform:
    """The platform with hosts named as their workers and, where a worker has fewer threads than cores, that many cores.

    A host stands for the worker of that name, or else for the one at that address (with or without protocol and port).

    Raises
    ------
    BadPlatform
        If a worker is not described, a host has no worker, or several workers are at a host's address.

    >>> lab = Platform.pairwise([2.0, 1.0], bandwidth=1e6)
    >>> match_hosts(lab, [Worker("h0", "tcp://10.0.0.1:4"), Worker("h1", "tcp://10.0.0.2:4")]).hosts[1].name
    'h1'
    """
    by_name = {worker.name: worker for worker in workers}
    found: dict[str, Worker] = {}
    for host in platform.hosts:
        if host.name in by_name:
            found[host.name] = by_name[host.name]
    free = [worker for worker in workers if worker.name not in found]
    for host in platform.hosts:
        if host.name not in found:
            at = [worker for worker in free if host.name in _addresses(worker)]
            if len(at) > 1:
                raise BadPlatform(
                    f"{len(at)} workers are at {host.name!r}: {_listed([w.name for w in at])}",
                    where=f"{platform.name}: host {host.name!r}",
                    hint="describe each worker as a host with its own name",
                )
            if at:
                found[host.name] = at[0]
    _require_all(platform, workers, found)
    return _renamed(platform, found)


def _addresses(worker: Worker) -> tuple[str, ...]:
    return (worker.address, worker.address.partition("://")[2], machine_of(worker.address))


def _require_all(platform: Platform, workers: Sequence[Worker], found: Mapping[str, Worker]) -> None:
    missing = [host.name for host in platform.hosts if host.name not in found]
    used = {worker.name for worker in found.values()}
    extra = [
        f"{worker.name} at {machine_of(worker.address)}" for worker in workers if worker.name not in used
    ]
    if missing:
        raise BadPlatform(
            f"no worker for {'hosts' if len(missing) > 1 else 'host'} {_listed(missing)}"
            + (f"; workers that are not described: {_listed(extra)}" if extra else ""),
            where=platform.name,
            hint="start workers with these names, name hosts after workers or their addresses, or remove the hosts",
        )
    if extra:
        raise BadPlatform(
            f"{'workers that are' if len(extra) > 1 else 'a worker that is'} not described: {_listed(extra)}",
            where=platform.name,
            hint="add a host with the worker's name or address",
        )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _renamed(platform: Platform, found: Mapping[str, Worker]) -> Platform:
    sites = tuple(
        replace(
            site,
            hosts=tuple(
                replace(h, name=found[h.name].name, cores=min(h.cores, found[h.name].threads))
                for h in site.hosts
            ),
        )
        for site in platform.sites
    )
    origin = platform.origin
    if origin is not None and origin in found:
        origin = found[origin].name
    return replace(platform, sites=sites, origin=origin)
