"""Memory and named resources of a real run's hosts: as described, and as their workers say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headrace.core.estimates import with_hosts
from headrace.model.platform import Host, Platform
from headrace.model.program import Program
from headrace.runtime.core_slots import HostRoom, whole_resources


def with_room(client: Any, platform: Platform, program: Program) -> Platform:
    """The platform whose hosts have no more memory than their workers may use, if tasks of the program need anything.

    A host also has the resources with which its worker was started, unless it names them itself.
    """
    return with_workers_room(client, platform) if program.graph.needs.names else platform


def with_workers_room(client: Any, platform: Platform) -> Platform:
    """The platform whose hosts have the memory and resources that their workers say."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    about = {str(worker["name"]): worker for worker in workers}
    return with_hosts(platform, lambda _, host: room_of(host, about.get(host.name, {})))


def room_of(host: Host, worker: Mapping[str, Any]) -> Host:
    """A host with what its worker says about itself.

    >>> about = {"memory_limit": 5, "resources": {"gpu": 2.0, "x": 3.5}}
    >>> there = room_of(Host("a", memory=9.0, resources={"gpu": 1}), about)
    >>> there.memory, there.resources
    (5.0, {'gpu': 1, 'x': 3})
    """
    memory = min(host.memory, float(worker.get("memory_limit") or math.inf))
    return replace(
        host, memory=memory, resources=whole_resources(worker.get("resources")) | dict(host.resources)
    )


def described_room(platform: Platform) -> HostRoom:
    """The hosts whose memory or resources are known, with these."""
    return tuple(
        (host.name, host.memory, tuple(host.resources.items()))
        for host in platform.hosts
        if host.memory < math.inf or host.resources
    )
