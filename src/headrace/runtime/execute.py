"""The client's side of a run on a cluster: submit the graph, receive events, fetch the results."""

from __future__ import annotations

import asyncio
import logging
import math
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Scheduler
from headrace.model.errors import (
    ClusterLost,
    ClusterRestarted,
    HeadraceError,
    RunStalled,
    RunStopped,
    TaskFailed,
)
from headrace.model.events import Event, TaskErred, TaskFinished
from headrace.model.graph import Graph
from headrace.model.needs import require_fitting
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.runtime.asking import ask_workers
from headrace.runtime.client_files import InputSender, fetch_staged, folder_for_results
from headrace.runtime.commit import reaches
from headrace.runtime.dask_plugin import CoordinatorPlugin
from headrace.runtime.files import StagedFile
from headrace.runtime.graph import EngineGraph, JobSettings, build_engine_graph
from headrace.runtime.hooks import NO_HOOKS, RunHooks
from headrace.runtime.host_room import described_room, with_room
from headrace.runtime.input_files import seen_folders
from headrace.runtime.kept_files import Keeping, Kept, folder_token
from headrace.runtime.messages import decode_error, decode_event
from headrace.runtime.packing import packer
from headrace.runtime.retrying import Retries
from headrace.runtime.run_policy import RunPolicy
from headrace.runtime.sealing import unseal
from headrace.runtime.task_logs import store_log

_LISTEN_SECONDS = 0.25
_LEAST_SILENCE = 30.0
_RESTARTS = 3
"""How often a run begins again when somebody restarts the cluster."""
_RESTART_SECONDS = 30.0
_STOP_SECONDS = 5.0
"""How long the scheduler may take to hear that a run is over: it may be frozen."""
_FETCH_SECONDS = 30.0
"""How long to wait for the results of a failed run: they exist, but their worker may be gone."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run. Times are in seconds since its start."""

    results: dict[str, Any]
    """The values of result items; after an error, those that are available."""
    makespan: float
    """When the last task finished."""
    events: tuple[Event, ...]
    errors: tuple[TaskErred, ...] = ()
    not_run: tuple[str, ...] = ()
    """After an error: tasks that did not finish, including those that depend on the failed one."""
    measured: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Per task: start and finish on its worker's clock, CPU seconds, bytes read, sizes written."""
    planning: float = 0.0
    """Seconds until the graph could be submitted: packing and planning."""

    @property
    def failure(self) -> TaskFailed | None:
        """The first error, as an exception that can be raised."""
        if not self.errors:
            return None
        first = self.errors[0]
        error = first.error.removeprefix(f"task {first.task!r}: ")
        return TaskFailed(error, where=f"task {first.task!r}" + (f" on {first.host}" if first.host else ""))


def execute(
    client: Any,
    platform: Platform,
    program: Program,
    scheduler: Scheduler | None,
    observe: Callable[[Event], None],
    *,
    timeout: float | None = None,
    base: str | Path = ".",
    patience: float = 0.0,
    graph: Graph | None = None,
    policy: RunPolicy | None = None,
    hooks: RunHooks = NO_HOOKS,
    logs: Path | None = None,
    shared_logs: bool = False,
) -> Outcome:
    """Run a program through a connected client; `observe` is called with each event, in this thread.

    `graph` is the program's graph, optionally with better estimates of run times and sizes. `hooks` say what else
    to do, and where workers keep what they make. What tasks print is kept in the folder `logs`: by the workers
    themselves if it is `shared_logs`, or else by this process.

    With `scheduler` None, the engine places the tasks. If no worker is left, the run ends with NoPlan
    after `patience` seconds.
    """
    platform = with_room(client, platform, program)
    require_fitting(program.graph, platform)
    kept = _Logs(logs, shared_logs)
    for attempt in range(_RESTARTS + 1):
        chosen = policy or RunPolicy()
        once = _Attempt(client, platform, program, scheduler, patience, graph, chosen, hooks, kept)
        try:
            return once.execute(observe, timeout, base)
        except ClusterRestarted:
            if attempt == _RESTARTS:
                raise
            _await_workers(client)
    raise AssertionError


def _await_workers(client: Any) -> None:
    """After a restart: wait until there are workers again; whether they are enough is decided later."""
    end = time.monotonic() + _RESTART_SECONDS
    while time.monotonic() < end and not client.scheduler_info(n_workers=-1)["workers"]:
        time.sleep(0.1)


@dataclass(frozen=True)
class _Logs:
    """The folder for what tasks print, and whether workers can write to it."""

    folder: Path | None
    shared: bool

    @property
    def for_workers(self) -> str:
        return str(self.folder.absolute()) if self.folder is not None and self.shared else ""


@dataclass(frozen=True)
class _Attempt:
    """One submission of a program; after a restart of the cluster there is another."""

    client: Any
    platform: Platform
    program: Program
    scheduler: Scheduler | None
    patience: float
    graph: Graph | None
    policy: RunPolicy
    hooks: RunHooks
    logs: _Logs

    def execute(self, observe: Callable[[Event], None], timeout: float | None, base: str | Path) -> Outcome:
        began = work_clock()
        # It starts with a digit: the engine then treats it as a hash, not as a name.
        token = f"0{uuid.uuid4().hex[:11]}"
        topic = f"headrace-{token}"
        limit = math.inf if self.policy.timeout is None else self.policy.timeout
        settings = JobSettings(
            limit,
            "" if self.logs.folder is None else topic,
            self.logs.for_workers,
            described_room(self.platform),
            seen_folders(self.platform, self.policy.shared, here=self.logs.shared),
            topic,
        )
        keeping = self.hooks.keeping
        shared = keeping is None or _all_reach(self.client, self.program, keeping)
        engine_graph = build_engine_graph(self.program, token, base, settings, keeping, shared)
        deadline = None if timeout is None else time.monotonic() + timeout
        run = _Run(self.client, engine_graph, observe, deadline, self.policy, self.hooks)
        run.logs = self.logs.folder
        plugin = self._plugin(engine_graph, topic)
        plugin.retries = Retries(self.program, self.policy)
        with _Listening(self.client, plugin.topic, run.messages), _Installed(self.client, plugin):
            planning = work_clock() - began
            return run.carry_out(self.program, planning)

    def _plugin(self, engine_graph: EngineGraph, topic: str) -> CoordinatorPlugin:
        packed = None
        if self.scheduler is not None:
            with packer() as pack:
                packed = pack(self.scheduler, f"scheduler {self.scheduler.name}")
        graph = _with_bytes(self.graph or self.program.graph, self.program)
        return CoordinatorPlugin(
            engine_graph.layout,
            graph,
            self.platform,
            packed,
            topic,
            self.patience,
            self.client.id,
            self.policy,
            self.hooks.keeping,
        )


def _with_bytes(graph: Graph, program: Program) -> Graph:
    """The graph without empty items: on real workers every value that a task reads is somewhere, and can be lost.

    Signals stay as they are: once given, they are not lost.
    """
    empty = [i for i in np.flatnonzero(graph.size == 0).tolist() if graph.item_names[i] in program.data]
    if not empty:
        return graph
    size = np.where(graph.unknown_size, np.nan, graph.size)
    size[empty] = np.nan
    return graph.with_size(size)


def _all_reach(client: Any, program: Program, keeping: Keeping) -> bool:
    """Whether all workers see the record's folder; asked only if kept files are to be read."""
    if not any(isinstance(item.value, Kept) and item.value.file for item in program.inputs()):
        return True
    workers = client.scheduler_info(n_workers=-1)["workers"]
    question = (keeping.folder, folder_token(keeping.key))
    answers = ask_workers(client, reaches, dict.fromkeys(workers, question))
    return len(answers) == len(workers) and all(answers.values())


class _Run:
    def __init__(
        self,
        client: Any,
        graph: EngineGraph,
        observe: Callable[[Event], None],
        deadline: float | None,
        policy: RunPolicy,
        hooks: RunHooks,
    ) -> None:
        self.logs: Path | None = None
        """Where logs are kept that workers send."""
        self.inputs = InputSender(client, graph.files)
        self.kept: set[str] = set()
        """Items that workers have kept: their contents need not be fetched."""
        self.client = client
        self.hooks = hooks
        self.graph = graph
        self.observe = observe
        self.deadline = deadline
        self.policy = policy
        self.patience = max(policy.stall, _LEAST_SILENCE)
        """Seconds without a sign of life from the plugin after which the scheduler is given up."""
        self.heard = time.monotonic()
        self.messages: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.events: list[Event] = []
        self.measured: dict[str, Mapping[str, Any]] = {}
        self.errors: list[TaskErred] = []
        self.ended = False
        self.drained = False
        """Whether, after a failure, nothing runs any more."""

    def carry_out(self, program: Program, planning: float) -> Outcome:
        try:
            return self._carry_out(program, planning)
        finally:
            self.inputs.stop()

    def _carry_out(self, program: Program, planning: float) -> Outcome:
        self.heard = time.monotonic()
        futures = self._submit()
        try:
            while not self.ended and not self.errors:
                self._listen()
            if self.errors:
                self._let_finish()
            results = dict(self.graph.given) | self._fetch(futures)
        finally:
            # The engine then drops the data and, after an error or interruption, tasks that have not started.
            for future in futures.values():
                future.release()
        finished = {e.task: e.time for e in self.events if isinstance(e, TaskFinished)}
        return Outcome(
            results=results,
            makespan=max(finished.values(), default=0.0),
            events=tuple(self.events),
            errors=tuple(self.errors),
            not_run=tuple(name for name in program.tasks if name not in finished) if self.errors else (),
            measured=self.measured,
            planning=planning,
        )

    def _let_finish(self) -> None:
        """After a failure, wait for tasks that are running: what they make is kept."""
        give_up = time.monotonic() + self.policy.failure_wait
        with suppress(HeadraceError):  # the failure matters more
            while not self.drained and not self.ended and time.monotonic() < give_up:
                self._listen()

    def _submit(self) -> dict[Any, Any]:
        import dask

        wanted = list(self.graph.layout.wanted)
        if not wanted:
            self.ended = True
            return {}
        # Inputs are deliberately part of the graph: they can then be recreated after a loss.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            futures = self.client.get(self.graph.graph, wanted, sync=False)
        return dict(zip(wanted, futures, strict=True))

    def _listen(self) -> None:
        """Process one batch of messages, or detect that none will come."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise RunStopped("the time limit is exceeded", where="run", hint="allow more time")
        self.hooks.check()
        try:
            message = self.messages.get(timeout=_LISTEN_SECONDS)
        except Empty:
            if self.client.status != "running":
                raise _cluster_lost() from None
            if time.monotonic() - self.heard > self.patience:
                raise RunStalled(
                    f"the cluster's scheduler has not been heard of for {self.patience:g} s",
                    where="run",
                    hint="check that it runs, then run again",
                ) from None
            return
        if message is not _WAKE:
            self.heard = time.monotonic()
        self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        self.measured.update(message["measured"])
        for task, measured in message["measured"]:
            self.kept.update(entry[0] for entry in measured.get("kept", ()))
            self.hooks.measured(task, measured)
        for token, address in message.get("wanted", ()):
            self.inputs.send(token, address)
        for encoded in message["events"]:
            event = decode_event(encoded)
            self.events.append(event)
            if isinstance(event, TaskErred) and not event.again:
                self.errors.append(event)
            self.observe(event)
        for task, host, attempt, printed in message.get("logs", ()):
            if self.logs is not None:
                with suppress(OSError):  # a full disk: the run matters more
                    store_log(self.logs, task, host, attempt, printed)
        if "error" in message:
            raise decode_error(message["error"])
        self.ended = self.ended or "end" in message
        self.drained = self.drained or "drained" in message

    def _fetch(self, futures: dict[Any, Any]) -> dict[str, Any]:
        """The values of all results or, after an error, of those that exist."""
        keys = dict(self.graph.results)
        if self.errors:
            self._recover(futures)
            keys = {name: key for name, key in keys.items() if futures[key].status == "finished"}
        wanted = [futures[key] for key in keys.values()]
        if not wanted:
            return {}
        gathering = asyncio.run_coroutine_threadsafe(
            _gathered(self.client, wanted), self.client.loop.asyncio_loop
        )
        gathering.add_done_callback(lambda _: self.messages.put(_WAKE))
        failed = bool(self.errors)
        give_up = time.monotonic() + _FETCH_SECONDS
        try:
            # A worker may die even now: its results are then recomputed, and events arrive.
            while not gathering.done():
                if failed and time.monotonic() > give_up:
                    return {}
                self._listen()
            values = gathering.result()
        except (HeadraceError, KeyboardInterrupt):
            raise
        except Exception as error:  # raised by unpickling a value, or by the engine
            raise TaskFailed(
                f"the results cannot be fetched: {type(error).__name__}: {error}", where="run"
            ) from error
        finally:
            gathering.cancel()
        return self._with_contents(self._opened(dict(zip(keys, values, strict=True))), futures)

    def _recover(self, futures: dict[Any, Any]) -> None:
        """After an error, wait for results that were there, were lost with their worker, and are being made again."""
        layout = self.graph.layout
        made = {event.task for event in self.events if isinstance(event, TaskFinished)}
        lost = [
            futures[key]
            for key in self.graph.results.values()
            if (layout.tasks.get(key) or layout.follows[key][0]) in made
        ]
        give_up = time.monotonic() + _FETCH_SECONDS
        with suppress(HeadraceError):  # the first error matters more
            while any(future.status in ("pending", "lost") for future in lost) and time.monotonic() < give_up:
                self._listen()

    def _opened(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values of results; those that could not be sent or unpickled are errors of their tasks."""
        results = {}
        for name, value in values.items():
            try:
                results[name] = unseal(value)
            except TaskFailed as error:
                key = self.graph.results[name]
                task = self.graph.layout.tasks.get(key) or self.graph.layout.follows[key][0]
                now = self.events[-1].time if self.events else 0.0
                self.errors.append(TaskErred(now, task, "", str(error)))
                self.events.append(self.errors[-1])
                self.observe(self.errors[-1])
        return results

    def _with_contents(self, results: dict[str, Any], futures: dict[Any, Any]) -> dict[str, Any]:
        """Results with the contents of files that no worker has kept, in a folder of this process."""
        files = {
            name: value
            for name, value in results.items()
            if isinstance(value, StagedFile) and name not in self.kept
        }
        if not files:
            return results
        folder = folder_for_results()
        holders = self.client.who_has([futures[self.graph.results[name]] for name in files])
        for number, (name, staged) in enumerate(files.items()):
            addresses = sorted(holders.get(self.graph.results[name], ()))
            path = folder / str(number)
            self.client.sync(fetch_staged, self.client, staged, addresses, path)
            results[name] = replace(staged, path=str(path))
        return results


def _cluster_lost() -> ClusterLost:
    # Its attempts to connect again would be shown with tracebacks.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    return ClusterLost(
        "the connection to the cluster's scheduler is lost",
        where="run",
        hint="see that the scheduler runs, then `headrace resume`",
    )


_WAKE: dict[str, Any] = {"events": (), "measured": ()}
"""An empty message that wakes a waiting client."""


async def _gathered(client: Any, futures: list[Any]) -> list[Any]:
    return list(await client.gather(futures, asynchronous=True))


class _Listening:
    """Context in which messages of a topic go to a queue."""

    def __init__(self, client: Any, topic: str, messages: SimpleQueue[dict[str, Any]]) -> None:
        self.client = client
        self.topic = topic
        self.messages = messages

    def __enter__(self) -> None:
        self.client.subscribe_topic(self.topic, lambda event: self.messages.put(event[1]))

    def __exit__(self, *_: object) -> None:
        if self.client.status == "running":  # else it would wait for a new connection
            with suppress(Exception):
                self.client.unsubscribe_topic(self.topic)


class _Installed:
    """Context in which the plugin runs in the engine's scheduler; replicas are kept if it makes decisions."""

    def __init__(self, client: Any, plugin: CoordinatorPlugin) -> None:
        self.client = client
        self.plugin = plugin

    def __enter__(self) -> None:
        try:
            self.client.register_plugin(self.plugin, name=self.plugin.name)
        except HeadraceError:
            raise
        except (ImportError, AttributeError) as error:
            raise HeadraceError(
                f"the cluster's scheduler cannot load this scheduler: {error}",
                where="cluster",
                hint="install the same version of headrace for the scheduler and the workers",
            ) from error

    def __exit__(self, *_: object) -> None:
        # The cluster may be gone by now; the error that ended the run matters more.
        if self.client.status == "running":
            with suppress(Exception):
                self.client.sync(
                    self.client.scheduler.log_event,
                    topic=self.plugin.stop_topic,
                    msg={},
                    callback_timeout=_STOP_SECONDS,
                )
