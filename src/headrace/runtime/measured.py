"""The platform that a cluster's workers form, measured."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace.model.arguments import wrong_argument
from headrace.model.errors import UsageError
from headrace.model.machines import MachineLinks, platform_of_machines
from headrace.model.platform import Host, Platform
from headrace.runtime.clients import is_client, require_connected
from headrace.runtime.host_room import with_workers_room
from headrace.runtime.installed import require_headrace
from headrace.runtime.matching import Worker
from headrace.runtime.network_probe import BUDGET, group_by_machine, probe_links
from headrace.runtime.probe import probe_speeds


def workers_of(client: Any, where: str = "cluster", patience: float = 0.0) -> list[Worker]:
    """The workers of a cluster, in order of their names; if there is none, wait this many seconds for one."""
    end = time.monotonic() + patience
    while not (info := client.scheduler_info(n_workers=-1)["workers"]) and time.monotonic() < end:
        time.sleep(0.1)
    if not info:
        raise UsageError(
            "the cluster has no workers", where=where, hint="start `dask worker` processes for it"
        )
    found = [Worker(str(about["name"]), address, about["nthreads"]) for address, about in info.items()]
    return sorted(found, key=lambda worker: (worker.name, worker.address))


def probe_platform(
    client: Any, name: str = "cluster", *, budget: float = BUDGET, say: Callable[[str], None] | None = None
) -> Platform:
    """Measure the speeds and links of a cluster's workers; see `Platform.probe`."""
    if not is_client(client):
        raise wrong_argument(
            "client", client, 'give a connected distributed.Client, such as Client("tcp://...")'
        )
    require_connected(client)
    workers = workers_of(client, name)
    require_headrace(client, name)
    names = {worker.address: worker.name for worker in workers}
    links = probe_links(client, names, budget, say or _show)
    return with_workers_room(client, measured_platform(workers, probe_speeds(client), links, name))


def measured_platform(
    workers: Iterable[Worker], speeds: Mapping[str, float], links: Iterable[MachineLinks], name: str
) -> Platform:
    """The platform of these workers, whose speeds are given by address; workers without one are left out."""
    present = {worker.address: worker for worker in workers if worker.address in speeds}
    grouped = group_by_machine({address: worker.name for address, worker in present.items()})
    hosts = {
        machine: [Host(present[a].name, speeds[a], present[a].threads) for a in addresses]
        for machine, addresses in grouped.items()
    }
    return platform_of_machines(hosts, links, name)


def _show(text: str) -> None:
    """Show progress to whoever sits at a terminal."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)
