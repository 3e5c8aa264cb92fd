"""Public function on pipeline applications: stream."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.given import as_app, as_pipeline
from headrace.model.deployment import Deployment
from headrace.model.errors import BadPlan, RunStopped, TaskFailed, UsageError
from headrace.model.pipeline import Pipeline, PipelineProblem
from headrace.model.platform import Platform
from headrace.model.units import plural
from headrace.runtime.filters import App
from headrace.runtime.streams.emulation import emulate_platform, emulate_speeds
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import StreamPlan, plan_of, read_plan
from headrace.runtime.streams.progress import Progress, UnitResult
from headrace.runtime.streams.redeploy import Redeployer
from headrace.runtime.streams.specs import Emulation
from headrace.runtime.streams.summary import StreamSummary, summarize
from headrace.runtime.streams.supervisor import Supervisor

if TYPE_CHECKING:
    from headrace.runtime.cluster import Cluster


@dataclass(frozen=True)
class Emulated:
    """Hosts and networks to emulate on this machine."""

    speeds: Sequence[float] | None = None
    """Relative speeds of the hosts, in the order of the plan's hosts; the fastest is this machine."""
    platform: Platform | None = None
    """Powers, ports and links as in this platform."""
    slower: float = 1.0
    """With a platform: divide all powers and bandwidths by this."""
    slowdowns: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Hosts that become slower while it runs: after how many seconds, and by which factor."""


@dataclass(frozen=True)
class Streamed:
    """The outcome of a stream run."""

    plan: StreamPlan
    summary: StreamSummary
    results: dict[str, list[bytes]]
    """For each filter without outgoing streams, what it sent, unit by unit; empty if results were written."""
    files: tuple[Path, ...]
    failure: TaskFailed | None

    @property
    def throughput(self) -> float | None:
        """MB/s read; None if no unit was completed."""
        return self.summary.measured

    @property
    def planned(self) -> float | None:
        return self.summary.planned


def stream(
    app: App | str | Path,
    on: str | Cluster = "local",
    deployment: Deployment | str | Path | None = None,
    *,
    pipeline: Pipeline | str | Path | None = None,
    workers: int | None = None,
    options: StreamOptions | None = None,
    emulate: Emulated | None = None,
    tls: dict[str, Any] | None = None,
    output: str | Path | None = None,
    observe: Callable[[Progress], None] = lambda progress: None,
    tell: Callable[[str], None] = lambda line: None,
) -> Streamed:
    """Run a pipeline application with its filters' copies on real workers.

    Parameters
    ----------
    app
        An application, or `file.py:name`, which is executed.
    on
        `local`, `tls://host:port`, `tcp://127.0.0.1:port`, or an open `Cluster`, which stays open.
    deployment
        A deployment, or the file of one. Without it the filters are measured in a trial run (or the kept
        measurements of the same application are used), and the deployment is planned.
    pipeline
        With the file of a deployment: the trial run that it was planned for. It has the power of this machine, for an
        emulated platform, and what `adapt` needs to change the copies.
    workers
        For local runs without a deployment: the number of hosts, by default one per core.
    options
        Credits, routing, duration, restarts.
    emulate
        For local runs: hosts and networks to emulate.
    output
        Folder for result files, one for each unit and last filter; without it they are returned.
    observe, tell
        Called with the state of the run several times a second, and with progress messages.

    Returns
    -------
    Streamed
        Results and measurements. A failing filter does not raise: see `Streamed.failure`.

    >>> import headrace as hr
    >>> from headrace.runtime.filters import App, Filter, Reader
    >>> class Words(Reader):
    ...     def read(self, out): out.send(b"to be or not to be")
    >>> class Count(Filter):
    ...     def process(self, buffer, out): out.send(b"%d" % len(buffer.data.split()))
    >>> app = App("words")
    >>> _ = app.filter("words", Words), app.filter("count", Count, inputs=["words"])
    >>> hr.stream(app, workers=2).results  # doctest: +SKIP
    {'count': [b'6']}
    """
    emulate, options = emulate or Emulated(), options or StreamOptions()
    app, pipeline = as_app(app), None if pipeline is None else as_pipeline(pipeline)
    given = _Given(app, on, deployment, pipeline, workers, emulate, tls, tell)
    _require_effects(given, options)
    with tempfile.TemporaryDirectory(prefix="headrace-ports-") as folder:
        plan, problem, opened = _plan(given)
        try:
            changing = problem if options.adapt else None
            emulation = _emulation(app, plan, pipeline, emulate, Path(folder), changing)
            keeper = _Keeper(None if output is None else Path(output))
            with _hosts(plan, changing, opened or on, tls, tell) as hosts:
                tell("running")
                run = Supervisor(
                    app,
                    plan,
                    hosts,
                    options,
                    emulation=emulation,
                    redeployer=_redeployer(app, changing, emulate),
                    commit=keeper.commit,
                    observe=observe,
                )
                failure = _run(run)
        finally:
            if opened is not None:
                opened.close()
    summary = summarize(app, run.progress, emulation.text, emulate.slower)
    return Streamed(run.plan, summary, keeper.results, tuple(keeper.files), failure)


def _run(run: Supervisor) -> TaskFailed | None:
    try:
        run.run()
    except TaskFailed as error:
        return error
    except KeyboardInterrupt:
        raise RunStopped("interrupted", where=run.app.name, hint="run it again") from None
    return None


@dataclass(frozen=True)
class _Given:
    """What a run was asked for, as far as the plan depends on it."""

    app: App
    on: str | Cluster
    deployment: Deployment | str | Path | None
    pipeline: Pipeline | None
    workers: int | None
    emulate: Emulated
    tls: dict[str, Any] | None
    tell: Callable[[str], None]


def _require_effects(given: _Given, options: StreamOptions) -> None:
    """Nothing may be asked for that would be ignored."""
    emulate, local = given.emulate, given.on == "local"
    if emulate.speeds is not None and emulate.platform is not None:
        raise UsageError("speeds and a platform to emulate", hint="give one of them")
    for name in ("adapt", "work_conserving"):
        if getattr(options, name) and options.routing != "planned":
            text = name.replace("_", "-")
            raise UsageError(
                f"{text} has no effect with {options.routing} routing", hint="use planned routing"
            )
    if not local and emulate != Emulated():
        raise UsageError("only local runs can emulate hosts", where=str(given.on), hint="use --on local")
    if given.deployment is not None and given.workers is not None:
        raise UsageError("workers have no effect with a deployment", hint="its hosts are the workers")
    if given.pipeline is not None:
        from_file = given.deployment is not None and not isinstance(given.deployment, Deployment)
        if not (from_file and (emulate.platform is not None or (options.adapt and not local))):
            raise UsageError(
                "the pipeline has no effect",
                hint="it is for the file of a deployment, with an emulated platform or to adapt on a cluster",
            )


def _plan(given: _Given) -> tuple[StreamPlan, PipelineProblem | None, Cluster | None]:
    """The plan, what it was planned for if that is known, and the cluster if it had to be opened for that."""
    from headrace.stream_planning import plan_alone

    app, deployment = given.app, given.deployment
    _ = app.order
    if isinstance(deployment, Deployment):
        return plan_of(app, deployment), deployment.problem, None
    if deployment is not None and (given.on == "local" or given.pipeline is None):
        plan = read_plan(app, str(deployment))
        return plan, _problem(plan, given.pipeline, given.emulate.platform), None
    if given.on == "local":
        emulate = given.emulate
        made = plan_alone(app, given.workers, emulate.speeds, emulate.platform, given.tell)
        return plan_of(app, made), made.problem, None
    opened = _connect(given.on, given.tls) if isinstance(given.on, str) else None
    try:
        return *_plan_with(given, opened if opened is not None else given.on), opened
    except BaseException:
        if opened is not None:
            opened.close()
        raise


def _plan_with(given: _Given, cluster: str | Cluster) -> tuple[StreamPlan, PipelineProblem | None]:
    """The plan for an open cluster, and what it was planned for."""
    from headrace.stream_planning import plan_on_cluster

    assert not isinstance(cluster, str)
    if given.deployment is None:
        made = plan_on_cluster(given.app, cluster, given.tell)
        return plan_of(given.app, made), made.problem
    plan = read_plan(given.app, str(given.deployment))
    return plan, _problem(plan, given.pipeline, cluster.platform)


def _problem(
    plan: StreamPlan, pipeline: Pipeline | None, platform: Platform | None
) -> PipelineProblem | None:
    """What the file of a deployment was planned for, if that is known."""
    if pipeline is None or platform is None:
        return None
    from headrace.stream_planning import deployed_problem

    return deployed_problem(plan, pipeline, platform)


def _redeployer(app: App, problem: PipelineProblem | None, emulate: Emulated) -> Redeployer | None:
    if problem is None:
        return None
    from headrace.stream_planning import deploy_again

    return Redeployer(app, problem, deploy_again, slower=emulate.slower)


def _emulation(
    app: App,
    plan: StreamPlan,
    pipeline: Pipeline | None,
    emulate: Emulated,
    folder: Path,
    changing: PipelineProblem | None,
) -> Emulation:
    """What is emulated; with a deployment that may change, for every filter on every host."""
    names = list(plan.hosts) if changing is None else list(changing.hosts)
    for host, (after, factor) in emulate.slowdowns.items():
        if host not in names or not (after >= 0 and factor >= 1):
            raise UsageError(
                f"{host!r} to be {factor:g} times as slow after {after:g} s",
                hint=f"name one of the hosts {', '.join(names[:8])}, and a factor of 1 or more",
            )
    pairs = plan.pairs if changing is None else [(name, host) for name in app.order for host in names]
    if emulate.speeds is not None:
        made = emulate_speeds(pairs, dict(zip(names, _speeds_of(names, emulate.speeds), strict=True)))
    elif emulate.platform is not None:
        powers = _powers(app, pipeline)
        made = emulate_platform(app, pairs, emulate.platform, powers, folder, emulate.slower)
    elif emulate.slower != 1.0:
        raise UsageError("slower has no effect without a platform", hint="give the platform to emulate")
    else:
        made = Emulation()
    slow = [
        f"{host} {factor:g} times as slow after {after:g} s"
        for host, (after, factor) in emulate.slowdowns.items()
    ]
    return replace(
        made, slowdowns=emulate.slowdowns, text="; ".join([made.text, *slow] if made.text else slow)
    )


def _powers(app: App, pipeline: Pipeline | None) -> dict[str, float]:
    """The power of this machine for each filter: as in the trial run, or measured."""
    if pipeline is None:
        from headrace.runtime.probe import calibrate
        from headrace.runtime.trial import REFERENCE_SECONDS

        return dict.fromkeys(app.order, REFERENCE_SECONDS / calibrate())
    powers = {f.name: f.power for f in pipeline.filters}
    missing = [name for name in app.order if name not in powers]
    if missing:
        raise UsageError(f"no power for filter {missing[0]!r}", hint="give the pipeline of this application")
    return powers


def _speeds_of(hosts: Sequence[str], speeds: Sequence[float]) -> list[float]:
    """Speeds of the hosts in use: those of a local plan carry their number in the name (w0-4x)."""
    local = [host.name for host in Platform.local(speeds=speeds).hosts]
    if all(host in local for host in hosts):
        return [speeds[local.index(host)] for host in hosts]
    if len(speeds) != len(hosts):
        raise UsageError(
            f"{len(speeds)} speeds for {len(hosts)} hosts", hint=f"give one for each of {', '.join(hosts)}"
        )
    return list(speeds)


def _connect(on: str, tls: dict[str, Any] | None) -> Cluster:
    from headrace.runtime.cluster import connect

    if "://" not in on:
        raise UsageError(
            f"cannot run on {on!r}", hint="use `local`, tls://host:port, or tcp://127.0.0.1:port"
        )
    return connect(on, **(tls or {}))


@contextmanager
def _hosts(
    plan: StreamPlan,
    changing: PipelineProblem | None,
    on: str | Cluster,
    tls: dict[str, Any] | None,
    tell: Callable[[str], None],
) -> Iterator[Any]:
    """An agent on each host: local workers stand for them, or workers of the same names.

    With a deployment that may change, also on hosts that it does not use yet.
    """
    from headrace.runtime.cluster import open_local
    from headrace.runtime.streams.dask_hosts import DaskHosts

    spare = [] if changing is None else [host for host in changing.hosts if host not in plan.hosts]
    names = [*plan.hosts, *spare]
    tell(f"starting {plural(len(names), 'host')}")
    own: Cluster | None = None
    if isinstance(on, str):
        own = open_local(len(names)) if on == "local" else _connect(on, tls)
    cluster = own if own is not None else on
    assert not isinstance(cluster, str)
    try:
        info = cluster.client.scheduler_info(n_workers=-1)["workers"]
        address = {str(worker["name"]): found for found, worker in info.items()}
        if on == "local":
            workers = dict(zip(names, (address[h.name] for h in cluster.platform.hosts), strict=True))
        else:
            unknown = [host for host in plan.hosts if host not in address]
            if unknown:
                raise BadPlan(
                    f"the cluster has no worker named {unknown[0]!r}",
                    hint=f"its workers are {', '.join(sorted(address)[:8])}",
                )
            workers = {host: address[host] for host in names if host in address}
        with DaskHosts(cluster, workers) as hosts:
            yield hosts
    except KeyboardInterrupt:
        raise RunStopped("interrupted", where=plan.app_name, hint="run it again") from None
    finally:
        if own is not None:
            own.close()


class _Keeper:
    """Writes results of the first round of units to files, each whole or not at all, or keeps them."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._seen: set[str] = set()
        self.results: dict[str, list[bytes]] = {}
        self.files: list[Path] = []

    def commit(self, unit: UnitResult) -> None:
        if unit.name in self._seen:
            return  # with a duration, units are repeated
        self._seen.add(unit.name)
        for name, buffers in unit.results.items():
            if self._folder is None:
                self.results.setdefault(name, []).extend(buffers)
            else:
                self.files.append(_write(self._folder, f"{unit.name}.{name}", buffers))


def _write(folder: Path, name: str, buffers: list[bytes]) -> Path:
    """A file under this name, which may not leave the folder."""
    from urllib.parse import quote

    folder.mkdir(parents=True, exist_ok=True)
    target = folder / quote(name, safe=" +-_.,").lstrip(".")
    part = target.with_name(f"{target.name}.part")
    with part.open("wb") as file:
        for data in buffers:
            file.write(data)
    part.replace(target)
    return target
