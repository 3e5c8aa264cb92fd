"""Trial runs on the hosts of a cluster: every filter is measured on one host of each class.

Hosts with the same processor, cores, threads and emulated speed form a class. The first host of each class runs the
whole trial, one class after the other, so that hosts on one machine do not disturb each other.
"""

from __future__ import annotations

import os
import platform as machine
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.model.errors import BadProgram, HeadraceError, TaskFailed
from headrace.model.pipeline import READER_KIND, FilterProfile, Pipeline
from headrace.model.platform import Host, Platform
from headrace.model.units import plural
from headrace.runtime.asking import ask_workers
from headrace.runtime.filters import App
from headrace.runtime.pace import PACE, SPEED_VARIABLE
from headrace.runtime.packing import packer, unpack
from headrace.runtime.trial import SPOOL_BYTES, Clock, FilterTrial, Trial, trial

if TYPE_CHECKING:
    from headrace.runtime.cluster import Cluster


@dataclass(frozen=True)
class HostClass:
    """Hosts that are alike, with the measurements on the first of them."""

    text: str
    hosts: tuple[str, ...]
    trial: Trial


@dataclass(frozen=True)
class ClusterTrial:
    """Measurements on each class of hosts, the class of the first host first."""

    app: App
    classes: tuple[HostClass, ...]

    def pipeline(self) -> Pipeline:
        """The pipeline as measured on the first class, whose power is 1 for every filter."""
        measured = self.classes[0].trial.pipeline()
        filters = [FilterProfile(f.name, f.seconds, f.volume) for f in measured.filters]
        return Pipeline(measured.name, filters, measured.streams)

    def powers(self, number: int) -> dict[str, float]:
        """Power of a class for each filter, relative to the first class; `reader` for the reader."""
        clock = self.classes[0].trial.clock
        first = {f.name: f.seconds(clock) for f in self.classes[0].trial.filters}
        reader = self.pipeline().reader.name
        return {
            READER_KIND if f.name == reader else f.name: _ratio(first[f.name], f.seconds(clock))
            for f in self.classes[number].trial.filters
        }

    def platform(self, measured: Platform) -> Platform:
        """A platform of the same hosts, each with the power of its class for every filter.

        Its speed, for anything else, is the mean of these.
        """
        kinds = {
            host: self.powers(number) for number, found in enumerate(self.classes) for host in found.hosts
        }

        def known(host: Host) -> Host:
            powers = kinds.get(host.name)
            if powers is None:
                return host
            return replace(host, speed=sum(powers.values()) / len(powers), kinds=powers)

        sites = tuple(replace(s, hosts=tuple(known(h) for h in s.hosts)) for s in measured.sites)
        return replace(measured, sites=sites)


def trial_on(
    cluster: Cluster,
    app: App,
    *,
    repeats: int = 1,
    clock: Clock = "wall",
    spool: int = SPOOL_BYTES,
    tell: Callable[[str], None] = lambda line: None,
) -> ClusterTrial:
    """Run the trial on one host of each class; Headrace must be installed on the hosts."""
    names = {
        address: str(about["name"])
        for address, about in cluster.client.scheduler_info(n_workers=-1)["workers"].items()
    }
    traits: dict[str, tuple[object, ...]] = ask_workers(cluster.client, host_traits, sorted(names))
    if not traits:
        raise HeadraceError("no worker answers", where="trial", hint="see that workers run")
    grouped: dict[tuple[object, ...], list[str]] = {}
    for address in sorted(traits, key=lambda a: (names[a], a)):
        grouped.setdefault(traits[address], []).append(address)
    with packer() as pack:
        payload = pack(app, app.name)
    classes = []
    for number, (trait, members) in enumerate(grouped.items(), 1):
        tell(f"class {number} of {len(grouped)}: {names[members[0]]}")
        measured = _measure(cluster.client, members[0], payload, repeats, clock, spool)
        found = Trial(app, measured, {}, clock)
        classes.append(HostClass(_text(trait), tuple(names[a] for a in members), found))
    return ClusterTrial(app, tuple(classes))


def _measure(
    client: Any, address: str, payload: bytes, repeats: int, clock: Clock, spool: int
) -> tuple[FilterTrial, ...]:
    future = client.submit(
        measure_here, payload, repeats, clock, spool, workers=[address], allow_other_workers=False, pure=False
    )
    try:
        report = future.result()
    finally:
        future.release()
    if "problem" in report:
        raise TaskFailed(report["problem"], where=report["where"], hint=report["hint"])
    return tuple(FilterTrial(**measured) for measured in report["filters"])


def measure_here(payload: bytes, repeats: int, clock: Clock, spool: int) -> dict[str, Any]:
    """On a worker: the whole trial, in processes of its own; times are those of the speed that it emulates."""
    app = unpack(payload)
    if not isinstance(app, App):
        raise BadProgram(f"a {type(app).__name__}, not an App", where="trial", hint="send an App")
    try:
        made = trial(app, repeats=repeats, clock=clock, spool=spool)
    except HeadraceError as error:
        return {"problem": error.problem, "where": error.where, "hint": error.hint}
    slower = PACE.stretch / PACE.speed if SPEED_VARIABLE in os.environ else 1.0
    return {
        "filters": [
            asdict(f) | {"wall": f.wall * slower, "cpu": f.cpu * slower, "power": f.power / slower}
            for f in made.filters
        ]
    }


def host_traits(dask_worker: Any) -> tuple[object, ...]:
    """On a worker: what tells its class of hosts from others."""
    threads = dask_worker.state.nthreads
    emulated = round(PACE.speed / PACE.stretch, 3) if SPEED_VARIABLE in os.environ else 1.0
    return (processor_name(), os.cpu_count() or 1, threads, emulated)


def processor_name() -> str:
    """The name of the processor.

    >>> len(processor_name()) > 0
    True
    """
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                if key.strip() in ("model name", "Model", "cpu model"):
                    return value.strip()
    except OSError:
        pass
    return machine.processor() or machine.machine() or "unknown processor"


def _text(trait: tuple[object, ...]) -> str:
    name, cores, threads, emulated = trait
    speed = f", emulated speed {emulated:g}" if emulated != 1.0 else ""
    return f"{name}, {plural(int(str(cores)), 'core')}, {plural(int(str(threads)), 'thread')}{speed}"


def _ratio(first: float, here: float) -> float:
    """Power relative to the first class; 1 for a filter that takes no measurable time."""
    return first / here if first > 0 and here > 0 else 1.0
