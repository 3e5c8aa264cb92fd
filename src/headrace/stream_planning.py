"""From an application to a plan without the user's help: trial run, forecast of load, deployment."""

from __future__ import annotations

import hashlib
import os
import platform as machine
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.deploying import deploy
from headrace.model.deployment import Deployment
from headrace.model.errors import HeadraceError, UsageError
from headrace.model.pipeline import Pipeline, PipelineProblem, Source
from headrace.model.platform import Platform
from headrace.model.units import plural
from headrace.runtime.filters import App
from headrace.runtime.host_load import load_of_machine, load_of_workers
from headrace.runtime.streams.plan import StreamPlan

if TYPE_CHECKING:
    from headrace.runtime.cluster import Cluster

Tell = Callable[[str], None]
_AGAIN_SECONDS = 2.0
"""Search time while a pipeline runs."""


def plan_alone(
    app: App, workers: int | None, speeds: Sequence[float] | None, emulated: Platform | None, tell: Tell
) -> Deployment:
    """A deployment for this machine: its workers, emulated speeds, or an emulated platform."""
    pipeline = measured_pipeline(app, tell)
    if emulated is not None:
        if workers is not None:
            raise UsageError("workers have no effect with a platform", hint="its hosts are the workers")
        return _deployed(pipeline, emulated, tell)
    if workers is not None and speeds is not None and workers != len(speeds):
        raise UsageError(f"{workers} workers with {len(speeds)} speeds", hint="give one speed per worker")
    platform = Platform.local(workers, speeds=speeds)
    if speeds is not None:
        return _deployed(_measured_with(pipeline, max(speeds)), platform, tell)
    return _deployed(_measured_with(pipeline, 1.0), platform, tell, _local_loads(platform, tell))


def plan_on_cluster(app: App, cluster: Cluster, tell: Tell) -> Deployment:
    """A deployment for a cluster, whose speeds were measured; the trial runs on this machine."""
    from headrace.runtime.probe import calibrate

    pipeline = measured_pipeline(app, tell)
    slowest = max(cluster.client.run(calibrate).values())
    loads = _cluster_loads(cluster, tell)
    return _deployed(_measured_with(pipeline, slowest / calibrate()), cluster.platform, tell, loads)


def _local_loads(platform: Platform, tell: Tell) -> dict[str, float]:
    """The forecast loads of local workers."""
    load, cores = load_of_machine()
    workers = len(platform.hosts)
    seen = load_of_workers(load, cores, workers)
    if seen > 0:
        tell(
            f"forecast load of this machine {load:.0%} of {plural(cores, 'core')}: "
            f"{1 - seen:.0%} of a core for each of {plural(workers, 'worker')}"
        )
    return {host.name: seen for host in platform.hosts}


def _cluster_loads(cluster: Cluster, tell: Tell) -> dict[str, float]:
    """The forecast loads of the workers of a cluster; those on one machine share its cores."""
    from headrace.runtime.asking import ask_workers

    info = cluster.client.scheduler_info(n_workers=-1)["workers"]
    found = ask_workers(cluster.client, load_of_machine, sorted(info))
    threads: dict[str, int] = {}
    for worker in info.values():
        threads[worker["host"]] = threads.get(worker["host"], 0) + int(worker["nthreads"])
    names = {host.name for host in cluster.platform.hosts}
    loads: dict[str, float] = {}
    for address, (load, cores) in sorted(found.items()):
        seen = load_of_workers(load, cores, threads[info[address]["host"]])
        name = str(info[address]["name"])
        if seen > 0 and name in names:
            loads[name] = seen
            tell(f"forecast load of {name}: {seen:.0%}")
    return loads


def measured_pipeline(app: App, tell: Tell) -> Pipeline:
    """The measurements of a trial run: kept ones, if application and machine are the same."""
    from headrace.formats.loading import load_pipeline
    from headrace.formats.pipeline_ini import write_pipeline
    from headrace.runtime.trial import trial

    kept = _kept_file(app)
    if kept.is_file():
        try:
            found = load_pipeline(kept)
            tell(f"measurements of an earlier trial run: {kept}")
            return found
        except HeadraceError:
            tell(f"{kept} cannot be read; measuring again")
    pipeline = trial(app, tell=lambda line: tell(f"trial run: {line}")).pipeline()
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_pipeline(pipeline, kept)
    return pipeline


def _kept_file(app: App) -> Path:
    """Where the measurements of this application on this machine are kept."""
    here = f"{machine.node()} {machine.processor()} {os.cpu_count()} {sys.version}"
    digest = hashlib.sha256(here.encode())
    for part in _identity(app):
        digest.update(hashlib.sha256(part).digest())
    home = Path(os.environ.get("HEADRACE_HOME") or ".headrace")
    return home / "trials" / f"{digest.hexdigest()[:24]}.ini"


def _identity(app: App) -> Iterator[bytes]:
    """What the measurements depend on: the shape of the application, and the source files next to its filters.

    A pickle of the application would not do: it differs from run to run.
    """
    yield repr(
        (app.name, app.buffer, [(unit.name, sorted(unit.settings.items())) for unit in app.units])
    ).encode()
    yield repr([(stream.name, stream.source, stream.target) for stream in app.streams]).encode()
    folders: set[Path] = set()
    for name, make in app.filters.items():
        given: tuple[object, ...] = ()
        while isinstance(make, partial):
            given, make = (*given, make.args, sorted(make.keywords.items())), make.func
        module = sys.modules.get(getattr(make, "__module__", ""), None)
        file = getattr(module, "__file__", None)
        yield repr((name, getattr(make, "__qualname__", ""), given)).encode()
        if file is not None:
            folders.add(Path(file).resolve().parent)
    files = {
        Path(found).resolve() for m in list(sys.modules.values()) if (found := getattr(m, "__file__", None))
    }
    for path in sorted(path for path in files if path.parent in folders and path.is_file()):
        yield path.read_bytes()


def _measured_with(pipeline: Pipeline, power: float) -> Pipeline:
    """The same measurements, on a machine of this power on the scale of the platform."""
    filters = [replace(f, power=power) for f in pipeline.filters]
    return Pipeline(pipeline.name, filters, pipeline.streams, pipeline.sources, pipeline.knobs)


def _deployed(
    pipeline: Pipeline, platform: Platform, tell: Tell, loads: Mapping[str, float] | None = None
) -> Deployment:
    tell("planning the deployment")
    if not pipeline.sources and platform.origin is None:
        first = platform.hosts[0].name
        pipeline = pipeline.with_sources([Source(first, {first: 1.0})])
    shared = len(platform.hosts) < len(pipeline.filters)
    made = deploy(pipeline, platform, several_per_host=shared, loads=loads)
    tell(f"planned {made.throughput:.4g} MB/s on {len(made.hosts_used)} hosts")
    return made


def deployed_problem(plan: StreamPlan, pipeline: Pipeline, platform: Platform) -> PipelineProblem:
    """What a deployment whose file says neither was planned for: readers stay where they are."""
    other = set(pipeline.index) ^ {place.filter for place in plan.places}
    if other:
        raise UsageError(
            f"filter {min(other)!r} is not in both the pipeline and the deployment",
            where=pipeline.name,
            hint="give the trial run that the deployment was planned for",
        )
    reader = pipeline.reader.name
    source = Source("as deployed", {place.host: place.share for place in plan.of(reader)})
    shared = any(len({p.filter for p in plan.places if p.host == host}) > 1 for host in plan.hosts)
    return PipelineProblem(pipeline.with_sources([source]), platform, pipeline.knobs, shared)


def deploy_again(problem: PipelineProblem) -> Deployment:
    """Another deployment for the same problem with other powers, in little time."""
    return deploy(
        problem.pipeline,
        problem.platform,
        knobs=problem.knobs,
        several_per_host=problem.several_per_host,
        segments=problem.segments,
        time=_AGAIN_SECONDS,
    )
