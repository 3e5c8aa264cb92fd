"""Existing Dask code on workers that are not alike: `with headrace.dask.steering(client): ...`."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headrace.model.arguments import checked_path
from headrace.model.errors import HeadraceError, UsageError
from headrace.model.network import build_network
from headrace.model.platform import Platform

if TYPE_CHECKING:
    from headrace.record import Record
    from headrace.runtime.matching import Worker

__all__ = ["Steered", "SteeringWarning", "security", "steering"]

_PATIENCE = 5.0
"""Seconds to wait for the first worker."""
_PAIRS_FOR = 64
"""With more workers than that, only the usual bandwidth into each of them is used."""


class SteeringWarning(UserWarning):
    """Dask places the tasks of a block by itself, and why."""


@dataclass
class Steered:
    """What a `steering` block knows; `measured` and `error` are there when it has ended."""

    platform: Platform | None
    """The workers, with their speeds and links; None if nothing could be found out."""
    active: bool = True
    """Whether tasks are placed by Headrace."""
    measured: int = 0
    """Tasks that were executed."""
    error: str = ""
    """Why Dask placed tasks by itself, or what else was missing."""


@contextmanager
def steering(
    client: Any,
    platform: Platform | str | Path | None = None,
    scheduler: Literal["auto", "dask"] = "auto",
    *,
    record: str | Path | None = None,
    learn: bool = True,
) -> Iterator[Steered]:
    """Place the tasks that a Dask client submits inside the block by measured speeds, links and run times.

    Everything that the client submits is meant: delayed, arrays, data frames, bags and futures. Results are the same.
    After the block the cluster is as it was before; tasks that still wait are placed by Dask. If steering is not
    possible, or fails, Dask places the tasks by itself, and there is one `SteeringWarning`.

    Parameters
    ----------
    client
        A connected `distributed.Client`. Headrace must be installed where the scheduler runs.
    platform
        A platform, or its file, that describes the workers, which are matched by name or address. By default speeds and
        bandwidths are measured and kept in the record for a day, or until there are other workers.
    scheduler
        `auto`, or `dask` to leave the placement to Dask and only learn run times.
    record
        Folder of the record; by default $HEADRACE_HOME, or .headrace in the current folder.
    learn
        Use run times of earlier blocks, and keep those of this one.

    >>> from distributed import Client
    >>> client = Client("tcp://127.0.0.1:8786")  # doctest: +SKIP
    >>> with steering(client):  # doctest: +SKIP
    ...     total = array.sum().compute()
    """
    mode = _checked(client, platform, scheduler)
    given = None if record is None else Path(checked_path(record, "folder of the record"))
    from headrace.record import Record

    with ExitStack() as stack:
        book, problem = None, ""
        if learn:
            try:
                book = stack.enter_context(Record.open(given))
            except (HeadraceError, OSError) as error:
                problem = f"run times are neither used nor kept: {error}"
        found = _enter(client, platform, mode, book)
        try:
            yield found.steered
        finally:
            _leave(client, found, book)
    found.steered.error = found.steered.error or problem
    if found.steered.error:
        warnings.warn(found.steered.error, SteeringWarning, stacklevel=3)


def _checked(client: Any, platform: object, scheduler: object) -> str:
    """The scheduler's name; raises an error if an argument is of no use."""
    from distributed import Client

    from headrace.runtime.clients import require_connected

    if not isinstance(client, Client):
        raise UsageError(f"{client!r} is not a Dask client", hint="give a distributed.Client")
    require_connected(client)
    if not isinstance(platform, Platform | str | Path | None):
        raise UsageError(
            f"platform is {platform!r}", where="steering", hint="give a Platform, its file, or nothing"
        )
    name = scheduler.lower() if isinstance(scheduler, str) else ""
    if name not in ("auto", "dask"):
        raise UsageError(f"scheduler is {scheduler!r}", where="steering", hint="use auto or dask")
    return name


@dataclass
class _Session:
    steered: Steered
    name: str = ""


def _enter(
    client: Any, platform: Platform | str | Path | None, scheduler: str, book: Record | None
) -> _Session:
    session = _Session(Steered(None), f"headrace-steering-{uuid.uuid4().hex[:12]}")
    if isinstance(platform, str | Path):
        platform = Platform.read(platform)
    try:
        from headrace.runtime.installed import require_on_scheduler

        require_on_scheduler(client, "steering")
    except Exception as error:  # as below, but nobody's platform is to blame
        _not_steered(session, str(error))
        return session
    from headrace.runtime.dask_steering import AlreadySteered, SteeringPlugin, steering_clients

    try:
        from headrace.record.steering_rows import steered_rows

        # Asked first, since the scheduler would log the plugin's exception with a traceback.
        if others := client.run_on_scheduler(steering_clients):
            raise AlreadySteered(others)
        workers = _workers(client, platform)
        known = session.steered.platform = _known(session, client, workers, platform, book)
        at = {worker.name: worker.address for worker in workers}
        plugin = SteeringPlugin(
            session.name,
            client.id,
            {} if known is None else {at[h.name]: h.speed for h in known.hosts if h.name in at},
            {} if known is None else _rates(known, at),
            [] if book is None else steered_rows(book),
            observe_only=scheduler == "dask",
        )
        client.register_plugin(plugin, name=session.name)
    except HeadraceError as error:
        if platform is not None:
            raise
        _not_steered(session, str(error))
    except AlreadySteered as other:
        _not_steered(session, "another client already steers this cluster")
        if client.id in other.args[0]:
            session.steered.error = (
                "this client already steers this cluster: the outer block places the tasks"
            )
    except Exception as error:  # the engine has many ways to fail, and none of them may stop the user's code
        _not_steered(session, f"{type(error).__name__}: {error}")
    return session


def _known(
    session: _Session, client: Any, workers: list[Worker], described: Platform | None, book: Record | None
) -> Platform | None:
    """The platform; without figures, all workers count as equal until their tasks have shown otherwise."""
    if not workers:
        session.steered.error = "speeds and links were not measured: there was no worker yet"
        return None
    try:
        return _platform(client, workers, described, book)
    except HeadraceError as error:
        if described is not None:
            raise
        session.steered.error = f"speeds and links were not measured: {error}"
        return None


def _not_steered(session: _Session, why: str) -> None:
    session.steered.active = False
    session.steered.error = f"Dask places the tasks by itself: {why}"


def _leave(client: Any, session: _Session, book: Record | None) -> None:
    if not session.steered.active:
        return
    session.steered.active = False
    from headrace.record.steering_rows import save_steered
    from headrace.runtime.dask_steering import end_steering

    try:
        rows, error = client.run_on_scheduler(end_steering, session.name)
    except Exception as lost:  # the cluster or the connection may be gone
        closed = getattr(client, "status", "") == "closed"
        restarted = isinstance(lost, KeyError)
        rows, error = [], "the client was closed" if closed else f"{type(lost).__name__}: {lost}"
        error = "the scheduler was restarted" if restarted else error
    session.steered.measured = len(rows)
    if error:
        last = error.strip().splitlines()[-1]
        session.steered.error = f"Dask placed tasks by itself: {last}"
    if book is not None and rows:
        with suppress(HeadraceError):  # what was measured is a help for later, not a result
            save_steered(book, rows)


def _workers(client: Any, described: Platform | None) -> list[Worker]:
    """The workers; none if there is none after a while, as in clusters that start workers when there are tasks."""
    from headrace.runtime.measured import workers_of

    try:
        return workers_of(client, patience=_PATIENCE)
    except UsageError:
        if described is not None:
            raise
        return []


def _platform(
    client: Any, workers: list[Worker], described: Platform | None, book: Record | None
) -> Platform | None:
    """The platform of the workers: described, kept, or measured."""
    if described is not None:
        from headrace.runtime.matching import match_hosts

        return match_hosts(described, workers)
    from headrace.run_platform import platform_of_run
    from headrace.runtime.cluster import Cluster
    from headrace.runtime.measured import measured_platform

    name = client.scheduler.address
    speeds = _speeds(client, workers, name, book)
    plain = measured_platform(workers, speeds, (), name)
    return platform_of_run(Cluster(client, plain, links_assumed=True), None, book).platform


def _speeds(client: Any, workers: list[Worker], cluster: str, book: Record | None) -> dict[str, float]:
    """Speeds by address."""
    from headrace.record.steering_rows import save_speeds, saved_speeds
    from headrace.runtime.installed import require_headrace
    from headrace.runtime.probe import probe_speeds

    kept = None if book is None else saved_speeds(book, cluster, [worker.name for worker in workers])
    if kept is not None:
        return {worker.address: kept[worker.name] for worker in workers}
    require_headrace(client, cluster)
    speeds = probe_speeds(client)
    if book is not None:
        save_speeds(book, cluster, {w.name: speeds[w.address] for w in workers if w.address in speeds})
    return speeds


def _rates(platform: Platform, at: Mapping[str, str]) -> dict[tuple[str, str], float]:
    """Bandwidth between workers by their addresses; ("", worker) is the usual one into a worker."""
    network = build_network(platform)
    hosts = [(number, at[host.name]) for number, host in enumerate(platform.hosts) if host.name in at]
    rates: dict[tuple[str, str], float] = {}
    for target, address in hosts:
        sources = [(number, a) for number, a in hosts if number != target][:_PAIRS_FOR]
        found = [
            (
                source,
                min(network.bandwidth(int(network.host_place[n]), int(network.host_place[target])), 1e12),
            )
            for n, source in sources
        ]
        into = sorted(rate for _, rate in found if rate > 0)
        rates["", address] = into[len(into) // 2] if into else 1e9
        if len(hosts) <= _PAIRS_FOR:
            rates.update({(source, address): rate for source, rate in found if rate > 0})
    return rates


def security(folder: str | Path) -> Any:
    """The certificates in a folder that `headrace certificates` made, as a `distributed.Security`.

    For a cluster that you start in Python, such as one of dask-jobqueue: `SLURMCluster(..., security=security("tls"))`.
    Workers read the same files, so the folder must have the same path on their machines.

    >>> import tempfile
    >>> from headrace.runtime.certificates import write_certificates
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     _ = write_certificates(Path(parent) / "tls")
    ...     security(Path(parent) / "tls").require_encryption
    True
    """
    from distributed import Security

    from headrace.runtime.certificates import material_files

    return Security(require_encryption=True, **{k: str(v) for k, v in material_files(Path(folder)).items()})
