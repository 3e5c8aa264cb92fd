"""What a real run knows of its hosts and links: described, measured, refined by transfers, or assumed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.model.machines import MachineLinks, platform_of_machines
from headrace.model.platform import Host, Platform
from headrace.model.units import plural, show_time
from headrace.predict.learning import Learned
from headrace.predict.links import later, refine_links
from headrace.predict.overheads import with_task_overhead
from headrace.record.run_reports import FIGURES_ONLY

if TYPE_CHECKING:
    from headrace.record import Record
    from headrace.runtime.cluster import Cluster
    from headrace.runtime.matching import Worker


UNKNOWN = "not known"


@dataclass(frozen=True)
class Sources:
    """Where the figures come from with which a run was planned, as short texts."""

    speeds: str
    links: str
    run_times: str = "figures of the program"
    engine: str = UNKNOWN
    """What is known of the time that the engine takes."""

    def facts(self) -> dict[str, str]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class RunPlatform:
    """The platform to plan a run for, and where its figures come from."""

    platform: Platform
    sources: Sources


def given_platform(platform: Platform) -> RunPlatform:
    """A platform that holds as it is."""
    text = f"as described in {platform.name}"
    return RunPlatform(platform, Sources(text, text))


def platform_of_run(
    cluster: Cluster,
    described: Platform | str | Path | None = None,
    record: Record | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> RunPlatform:
    """The platform that a cluster's workers form.

    A described platform holds as it is; its hosts are matched with workers by name or address. Otherwise speeds are
    those of the cluster, and links of which nothing is known are measured, unless the record has recent figures.
    """
    from headrace.runtime.measured import workers_of

    if described is not None:
        from headrace.runtime.matching import match_hosts

        given = Platform.read(described) if isinstance(described, str | Path) else described
        return given_platform(match_hosts(given, workers_of(cluster.client, patience=cluster.patience)))
    speeds = "as given" if cluster.pids else "measured by a CPU benchmark"
    if not cluster.links_assumed:
        return RunPlatform(cluster.platform, Sources(speeds, "as given"))
    workers = workers_of(cluster.client, cluster.platform.name, cluster.patience)
    links, text = _links(cluster, workers, record, say)
    return RunPlatform(_with_links(cluster.platform, workers, links), Sources(speeds, text))


def described_sources(sources: Sources, learned: Learned) -> Sources:
    """The same with where run times come from."""
    tasks = learned.graph.n_tasks
    parts = []
    if learned.same_task:
        parts.append(f"{learned.same_task} of {plural(tasks, 'task')} from earlier executions")
    if learned.by_kind:
        parts.append(f"{learned.by_kind} from others of their kind")
    left = tasks - learned.same_task - learned.by_kind
    if left and parts:
        parts.append(f"{left} from the program's figures")
    return replace(sources, run_times=(", ".join(parts) or FIGURES_ONLY) + _overridden(learned))


def _overridden(learned: Learned) -> str:
    """Where history overrides the user's figures, and by how much; the largest three."""
    found = [(kind, factor) for kind, factor in learned.overridden.items() if factor > 0]
    largest = sorted(found, key=lambda each: (-abs(math.log(each[1])), each[0]))[:3]
    told = ", ".join(f"{kind or 'tasks'} {factor:.3g} times" for kind, factor in largest)
    return f"; history overrides the program's figures: {told}" if told else ""


def with_overheads(given: RunPlatform, learned: Learned, record: Record | None) -> RunPlatform:
    """The platform to plan for: with the time that the engine took for each task in earlier runs on it."""
    sources = described_sources(given.sources, learned)
    if record is None:
        return RunPlatform(learned.platform, sources)
    from headrace.record.probes import saved_overheads

    found = saved_overheads(record, learned.platform.name)
    if not found.task and not found.transfer:
        return RunPlatform(learned.platform, sources)
    text = f"{show_time(found.task)} a task and {show_time(found.transfer)} a transfer in earlier runs"
    planning = with_task_overhead(learned.graph, learned.platform, found.task)
    return RunPlatform(planning, replace(sources, engine=text))


def _links(
    cluster: Cluster, workers: list[Worker], record: Record | None, say: Callable[[str], None]
) -> tuple[tuple[MachineLinks, ...], str]:
    """Links from the record, or measured now, and from transfers since then."""
    from headrace.runtime.network_probe import group_by_machine, probe_links

    names = {worker.address: worker.name for worker in workers}
    machines = group_by_machine(names)
    if record is None:
        return probe_links(cluster.client, names, say=say), "measured now"
    from headrace.record.probes import save_links, saved_links, saved_overheads, transfers_since

    name = cluster.platform.name
    probed = saved_links(record, name, machines)
    if probed is None:
        links = probe_links(cluster.client, names, say=say)
        save_links(record, name, links)
        return links, "measured now"
    machine = {names[address]: of for of, addresses in machines.items() for address in addresses}
    refined = refine_links(probed.links, transfers_since(record, name, probed.measured), machine)
    text = f"measured {show_time(max(0.0, time.time() - probed.measured))} ago"
    if refined.transfers:
        text += f" and by {plural(refined.transfers, 'transfer')} since"
    return tuple(later(link, saved_overheads(record, name).transfer) for link in refined.links), text


def _with_links(platform: Platform, workers: list[Worker], links: tuple[MachineLinks, ...]) -> Platform:
    """The platform's hosts, on machines with these links."""
    from headrace.runtime.network_probe import machine_of

    if len(links) == 1 and len(platform.sites) == 1:
        (site,), (link,) = platform.sites, links
        bandwidth = site.bandwidth if link.inside is None else link.inside
        latency = site.latency if link.inside_latency is None else link.inside_latency
        return replace(platform, sites=(replace(site, bandwidth=bandwidth, latency=latency),))
    at = {worker.name: machine_of(worker.address) for worker in workers}
    hosts: dict[str, list[Host]] = {}
    for host in platform.hosts:
        hosts.setdefault(at.get(host.name, "?"), []).append(host)
    return platform_of_machines(dict(sorted(hosts.items())), links, platform.name)
