"""From an application to a plan without the user's help: trial run, platform, deployment."""

from __future__ import annotations

import hashlib
import os
import platform as machine
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.deploying import deploy
from headrace.model.errors import HeadraceError, UsageError
from headrace.model.pipeline import Pipeline, Source
from headrace.model.platform import Platform
from headrace.runtime.filters import App
from headrace.runtime.streams.plan import StreamPlan, plan_of

if TYPE_CHECKING:
    from headrace.runtime.cluster import Cluster

Tell = Callable[[str], None]


def plan_alone(
    app: App, workers: int | None, speeds: Sequence[float] | None, emulated: Platform | None, tell: Tell
) -> StreamPlan:
    """A plan for this machine: its workers, emulated speeds, or an emulated platform."""
    pipeline = measured_pipeline(app, tell)
    if emulated is not None:
        if workers is not None:
            raise UsageError("workers have no effect with a platform", hint="its hosts are the workers")
        return _deployed(app, pipeline, emulated, tell)
    if workers is not None and speeds is not None and workers != len(speeds):
        raise UsageError(f"{workers} workers with {len(speeds)} speeds", hint="give one speed per worker")
    platform = Platform.local(workers, speeds=speeds)
    hosts, cores = len(platform.hosts), os.cpu_count() or 1
    if speeds is None and hosts > cores:
        # More workers than cores: when all are busy, each has its part of a core.
        tell(f"{hosts} workers share {cores} cores")
        platform = _with_power(platform, cores / hosts)
    power = max(speeds) if speeds is not None else 1.0
    return _deployed(app, _measured_with(pipeline, power), platform, tell)


def plan_on_cluster(app: App, cluster: Cluster, tell: Tell) -> StreamPlan:
    """A plan for a cluster, whose speeds were measured; the trial runs on this machine."""
    from headrace.runtime.probe import calibrate

    pipeline = measured_pipeline(app, tell)
    slowest = max(cluster.client.run(calibrate).values())
    return _deployed(app, _measured_with(pipeline, slowest / calibrate()), cluster.platform, tell)


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


def _with_power(platform: Platform, power: float) -> Platform:
    sites = tuple(
        replace(site, hosts=tuple(replace(host, speed=host.speed * power) for host in site.hosts))
        for site in platform.sites
    )
    return replace(platform, sites=sites)


def _deployed(app: App, pipeline: Pipeline, platform: Platform, tell: Tell) -> StreamPlan:
    tell("planning the deployment")
    if not pipeline.sources and platform.origin is None:
        first = platform.hosts[0].name
        pipeline = pipeline.with_sources([Source(first, {first: 1.0})])
    shared = len(platform.hosts) < len(pipeline.filters)
    made = deploy(pipeline, platform, several_per_host=shared)
    tell(f"planned {made.throughput:.4g} MB/s on {len(made.hosts_used)} hosts")
    return plan_of(app, made)
