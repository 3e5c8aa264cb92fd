"""Clusters: workers started on this machine, or an existing cluster."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from headrace.core.scheduler import Scheduler
from headrace.model.errors import RunStopped, UsageError
from headrace.model.events import Event
from headrace.model.graph import Graph
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.runtime.clients import require_connected
from headrace.runtime.execute import Outcome, execute
from headrace.runtime.hooks import NO_HOOKS, RunHooks
from headrace.runtime.installed import require_headrace
from headrace.runtime.local_workers import LocalWorkers, spawn_workers
from headrace.runtime.measured import measured_platform, workers_of
from headrace.runtime.probe import probe_speeds
from headrace.runtime.run_policy import RunPolicy
from headrace.runtime.tls_check import mismatch
from headrace.runtime.transport import TransportKind

_PATIENCE = 10.0
"""Seconds to wait for a worker to return when none is left in a real cluster."""
RESTART_PATIENCE = 60.0
"""The same for local workers that are started again."""
_NEVER_BLAME = 10**9


class Cluster:
    """A set of workers and the platform they form; executes programs. Close it, or use it in `with`."""

    computes = True

    def __init__(
        self,
        client: Any,
        platform: Platform,
        workers: LocalWorkers | None = None,
        engine: Any = None,
        *,
        patience: float = _PATIENCE,
        links_assumed: bool = False,
    ) -> None:
        self.client = client
        self.platform = platform
        self._workers = workers
        self._engine = engine
        self.patience = patience
        """Seconds to wait for a worker when there is none."""
        self.links_assumed = links_assumed
        """Whether nothing is known about the links of the platform, so that a run measures them first."""

    def execute(
        self,
        program: Program,
        scheduler: Scheduler | None = None,
        observe: Callable[[Event], None] = lambda event: None,
        *,
        timeout: float | None = None,
        base: str | Path = ".",
        graph: Graph | None = None,
        platform: Platform | None = None,
        hooks: RunHooks = NO_HOOKS,
        policy: RunPolicy | None = None,
        logs: Path | None = None,
    ) -> Outcome:
        """Run a program; with `scheduler` None, the engine places the tasks.

        `graph` and `platform` override those of the program and the cluster, to supply better estimates of run
        times, sizes and speeds. `policy` says how failures are dealt with. What tasks print is kept in the folder
        `logs`, if one is given.

        A failing task ends the run, and the outcome then has errors. An interruption closes the
        cluster and raises RunStopped.
        """
        try:
            return execute(
                self.client,
                platform or self.platform,
                program,
                scheduler,
                observe,
                timeout=timeout,
                base=base,
                patience=self.patience,
                graph=graph,
                hooks=hooks,
                policy=policy,
                logs=logs,
                shared_logs=self._workers is not None,
            )
        except KeyboardInterrupt:
            self.close()
            raise RunStopped("interrupted", where=program.name, hint="run it again") from None

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of local workers by host name; empty for an existing cluster."""
        return {} if self._workers is None else self._workers.pids

    def start_workers(self, *names: str) -> None:
        """Start more workers on this machine, with one thread each: they join the cluster, and a run that is under way.

        For clusters of `open_local`; the new workers end with it. Workers of other clusters join by themselves, when
        somebody starts them.

        >>> with open_local(1) as cluster:  # doctest: +SKIP
        ...     cluster.start_workers("guest")
        ...     sorted(cluster.pids)
        ['guest', 'w0']
        """
        taken = [name for name in names if name in self.pids]
        if self._workers is None or taken:
            raise UsageError(
                f"worker {taken[0]!r} exists" if taken else "this is not a local cluster",
                where=self.platform.name,
                hint="use other names" if taken else "start workers with `dask worker`",
            )
        self._workers.add([Host(name) for name in names])

    def close(self) -> None:
        """Disconnect; local workers and the commands they started are ended."""
        if self._workers is not None:
            self._workers.end()
        self.client.close()
        if self._engine is not None:
            self._engine.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_local(
    workers: int | None = None,
    *,
    speeds: Sequence[float] | None = None,
    stretch: float = 1.0,
    threads: int = 1,
    restart: bool = True,
    transport: TransportKind = "auto",
) -> Cluster:
    """Start workers on this machine, one process each: w0, w1, ..., or w0-4x, w1-2x, ... with speeds.

    With `speeds`, each worker emulates its speed by making tasks last longer: with a `stretch`
    of at least the largest speed, tasks that used c seconds last c * stretch / speed.

    Only processes of this user can connect: they use Unix sockets in a folder that is closed to others or, where
    there are none or with `transport="tls"`, TLS with a certificate that exists in their memory alone. With `restart`,
    a worker that dies is started again under the same name.
    """
    return join_workers(
        spawn_workers(workers, speeds=speeds, stretch=stretch, threads=threads, transport=transport),
        restart=restart,
    )


def join_workers(
    spawned: LocalWorkers, *, restart: bool = True, meanwhile: Callable[[], object] = lambda: None
) -> Cluster:
    """Make a cluster of worker processes that wait for one; `meanwhile` is called while they join it."""
    # Closing kills the workers, which the engine would otherwise report to the user.
    logging.getLogger("distributed.batched").setLevel(logging.WARNING)
    engine = client = None
    try:
        transport = spawned.transport
        engine, client = start_scheduler(transport.host, transport.security)
        spawned.join(engine.scheduler_address)
        meanwhile()
        spawned.wait_for(client)
        spawned.supervise(restart)
        patience = RESTART_PATIENCE if restart else 0.0
        return Cluster(client, spawned.platform, spawned, engine, patience=patience, links_assumed=True)
    except BaseException as error:
        for opened in (spawned, client, engine):
            if opened is not None:
                opened.close()
        if isinstance(error, KeyboardInterrupt):
            raise RunStopped("interrupted", where="starting workers", hint="run it again") from None
        raise


def start_scheduler(host: str, security: Mapping[str, str], port: int = 0) -> tuple[Any, Any]:
    """Start the engine's scheduler in this process, and a client of it.

    `host` is the address to listen at with its protocol, `security` has parameters of `distributed.Security`.
    """
    import dask
    from distributed import Client, LocalCluster, Security

    from headrace.runtime.dask_sockets import register_sockets

    register_sockets()
    with dask.config.set({"distributed.scheduler.http.routes": []}):
        engine = LocalCluster(
            n_workers=0,
            processes=True,
            host=host,
            scheduler_port=port,
            protocol=host.partition("://")[0],
            security=Security(require_encryption=bool(security), **security),
            silence_logs=logging.CRITICAL,
            scheduler_kwargs={
                "dashboard": False,
                "dashboard_address": "127.0.0.1:0",
                # The engine blames every task that was queued on a lost worker; workers here know which one it was.
                "allowed_failures": _NEVER_BLAME,
            },
        )
    try:
        engine.loop.add_callback(
            engine.scheduler.http_server.stop
        )  # no pages, but others could connect to it
        return engine, Client(engine, set_as_default=False)
    except BaseException:
        engine.close()
        raise


def connect(
    url: str,
    *,
    ca: str | Path | None = None,
    cert: str | Path | None = None,
    key: str | Path | None = None,
    bandwidth: float | None = None,
    timeout: float = 15.0,
) -> Cluster:
    """Connect to a running cluster at `tls://host:port`, or `tcp://` on this machine only.

    Certificates are taken from the arguments, or else from the engine's configuration (environment
    variables DASK_DISTRIBUTED__COMM__TLS__...). Headrace must be installed on the cluster too. The speed of
    every worker is measured. `bandwidth` is that of each worker's port, in bytes/s; without it, runs measure the links.
    """
    from distributed import Client

    security = _security(_checked_url(url), ca, cert, key)
    try:
        client = Client(url, security=security, timeout=timeout, set_as_default=False)
    except KeyboardInterrupt:
        raise RunStopped("interrupted", where=url, hint="run it again") from None
    except Exception as error:  # any layer of the engine may raise here
        found = mismatch(url)
        if found is not None:
            raise UsageError(f"cannot connect: {found[0]}", where=url, hint=found[1]) from None
        raise UsageError(
            f"cannot connect: {error or type(error).__name__}",
            where=url,
            hint="check that the scheduler runs there and that the certificates match",
        ) from None
    try:
        return Cluster(client, _measured_platform(client, url, bandwidth), links_assumed=bandwidth is None)
    except BaseException:
        client.close()
        raise


def over_client(client: Any) -> Cluster:
    """The cluster of a connected `distributed.Client`, which stays open; the speed of every worker is measured."""
    require_connected(client)
    return Cluster(client, _measured_platform(client, client.scheduler.address, None), links_assumed=True)


def _measured_platform(client: Any, url: str, bandwidth: float | None) -> Platform:
    """Speeds as measured; links with the given bandwidth, or assumed ones, which a run then measures."""
    workers = workers_of(client, url)
    require_headrace(client, url)
    speeds = probe_speeds(client)
    if bandwidth is None:
        return measured_platform(workers, speeds, (), url)
    hosts = tuple(Host(w.name, speeds[w.address], w.threads) for w in workers if w.address in speeds)
    return Platform((Site("cluster", hosts, bandwidth=bandwidth),), name=url)


def _checked_url(url: str) -> str:
    """The URL scheme, if it is allowed for this address."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port is None or parts.scheme not in ("tls", "tcp"):
        raise UsageError(f"{url!r} is not the address of a cluster", hint="write tls://host:port")
    if parts.scheme == "tcp" and not _is_loopback(host):
        raise UsageError(
            f"{url!r} would send programs and data unencrypted and unauthenticated",
            hint=f"use tls://{host}:{port} and certificates",
        )
    return parts.scheme


def _is_loopback(host: str) -> bool:
    """
    >>> _is_loopback("127.0.0.5"), _is_loopback("::1"), _is_loopback("localhost"), _is_loopback("10.0.0.1")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _security(scheme: str, ca: object, cert: object, key: object) -> Any:
    from distributed import Security

    if scheme == "tcp":
        return None
    given = {"tls_ca_file": ca, "tls_client_cert": cert, "tls_client_key": key}
    for path in given.values():
        if path is not None and not Path(str(path)).is_file():
            raise UsageError(f"there is no file {str(path)!r}", where="TLS", hint="check the path")
    security = Security(
        require_encryption=True, **{name: str(path) for name, path in given.items() if path is not None}
    )
    if not (security.tls_ca_file and security.tls_client_cert):
        raise UsageError(
            "a tls:// address needs certificates",
            hint="pass --tls-ca, --tls-cert and --tls-key, or set DASK_DISTRIBUTED__COMM__TLS__CA_FILE etc.",
        )
    return security
