"""The client's side of a run on a cluster: submit the graph, receive events, fetch the results."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from headrace.arrays.clock import work_clock
from headrace.core.scheduler import Scheduler
from headrace.model.errors import HeadraceError, NoPlan, RunStopped, TaskFailed
from headrace.model.events import Event, TaskErred, TaskFinished
from headrace.model.graph import Graph
from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.runtime.commit import reaches
from headrace.runtime.dask_plugin import CoordinatorPlugin
from headrace.runtime.graph import EngineGraph, build_engine_graph
from headrace.runtime.hooks import NO_HOOKS, RunHooks
from headrace.runtime.kept_files import Keeping, Kept, folder_token
from headrace.runtime.messages import decode_error, decode_event
from headrace.runtime.packing import packer

_LISTEN_SECONDS = 0.25
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
        return TaskFailed(error, where=f"task {first.task!r} on {first.host or 'a lost worker'}")


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
    hooks: RunHooks = NO_HOOKS,
) -> Outcome:
    """Run a program through a connected client; `observe` is called with each event, in this thread.

    `graph` is the program's graph, optionally with better estimates of run times and sizes. `hooks` say what else
    to do, and where workers keep what they make.

    With `scheduler` None, the engine places the tasks. If no worker is left, the run ends with NoPlan
    after `patience` seconds.
    """
    began = work_clock()
    token = (
        f"0{uuid.uuid4().hex[:11]}"  # starts with a digit: the engine then treats it as a hash, not as a name
    )
    shared = hooks.keeping is None or _all_reach(client, program, hooks.keeping)
    engine_graph = build_engine_graph(program, token, base, hooks.keeping, shared)
    deadline = None if timeout is None else time.monotonic() + timeout
    run = _Run(client, engine_graph, observe, deadline, hooks)
    policy = None
    if scheduler is not None:
        with packer() as pack:
            policy = pack(scheduler, f"scheduler {scheduler.name}")
    topic = f"headrace-{token}"
    plugin = CoordinatorPlugin(engine_graph.layout, graph or program.graph, platform, policy, topic, patience)
    with _Listening(client, topic, run.messages), _Installed(client, plugin):
        planning = work_clock() - began
        return run.carry_out(program, planning)


def _all_reach(client: Any, program: Program, keeping: Keeping) -> bool:
    """Whether all workers see the record's folder; asked only if kept files are to be read."""
    if not any(isinstance(item.value, Kept) and item.value.file for item in program.inputs()):
        return True
    return all(client.run(reaches, keeping.folder, folder_token(keeping.key)).values())


class _Run:
    def __init__(
        self,
        client: Any,
        graph: EngineGraph,
        observe: Callable[[Event], None],
        deadline: float | None,
        hooks: RunHooks,
    ) -> None:
        self.client = client
        self.hooks = hooks
        self.graph = graph
        self.observe = observe
        self.deadline = deadline
        self.messages: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.events: list[Event] = []
        self.measured: dict[str, Mapping[str, Any]] = {}
        self.errors: list[TaskErred] = []
        self.ended = False

    def carry_out(self, program: Program, planning: float) -> Outcome:
        futures = self._submit()
        try:
            while not self.ended and not self.errors:
                self._listen()
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
                raise NoPlan(
                    "the connection to the cluster is lost",
                    where="run",
                    hint="restart the cluster and run again",
                ) from None
            return
        self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        self.measured.update(message["measured"])
        for task, measured in message["measured"]:
            self.hooks.measured(task, measured)
        for encoded in message["events"]:
            event = decode_event(encoded)
            self.events.append(event)
            if isinstance(event, TaskErred):
                self.errors.append(event)
            self.observe(event)
        if "error" in message:
            raise decode_error(message["error"])
        self.ended = self.ended or "end" in message

    def _fetch(self, futures: dict[Any, Any]) -> dict[str, Any]:
        """The values of all results or, after an error, of those that exist."""
        keys = dict(self.graph.results)
        if self.errors:
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
        return dict(zip(keys, values, strict=True))


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
        with suppress(Exception):
            self.client.unsubscribe_topic(self.topic)


class _Installed:
    """Context in which the plugin runs in the engine's scheduler; replicas are kept if it makes decisions."""

    def __init__(self, client: Any, plugin: CoordinatorPlugin) -> None:
        self.client = client
        self.plugin = plugin
        self.resume_manager = False

    def __enter__(self) -> None:
        try:
            self.client.register_plugin(self.plugin, name=self.plugin.name)
        except HeadraceError:
            raise
        except (ImportError, AttributeError) as error:
            raise HeadraceError(
                f"the cluster's scheduler cannot load the policy: {error}",
                where="cluster",
                hint="install the same version of headrace for the scheduler and the workers",
            ) from error
        if self.plugin.policy is not None and self.client.amm.running():
            # The active memory manager would drop copies that the plan relies on.
            self.client.amm.stop()
            self.resume_manager = True

    def __exit__(self, *_: object) -> None:
        # The cluster may be gone by now; the error that ended the run matters more.
        with suppress(Exception):
            self.client.unregister_scheduler_plugin(self.plugin.name)
            if self.resume_manager:
                self.client.amm.start()
