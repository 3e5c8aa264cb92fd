"""What makes no noise: processes that are stopped, hosts that are not heard from, links that carry nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from headrace.model.errors import TaskFailed
from headrace.runtime.filters import App
from headrace.runtime.filters_here import run_here
from headrace.runtime.streams.agent import Child, _is_stopped
from headrace.runtime.streams.counters import COMPUTING, WAITS_CREDIT, Counters
from headrace.runtime.streams.faults import Fault
from headrace.runtime.streams.hosts import Event, LocalHosts
from headrace.runtime.streams.liveness import Liveness
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import even_plan
from headrace.runtime.streams.progress import Progress, UnitResult
from headrace.runtime.streams.spec import CopySpec
from headrace.runtime.streams.supervisor import Supervisor

from .apps import multiset
from .made import Slow, build
from .test_faults import children_of

needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
STALL = 1.0
BOTH = [pytest.param(0, id="fails"), pytest.param(1, id="restarts", marks=pytest.mark.slow)]


def slow_app() -> App:
    app = build("chain", 1, 1, [[50] * 300] * 3)
    app.filters["f0"] = partial(Slow, app.filters["f0"])
    return app


def supervised(hosts: LocalHosts, restarts: int, observe, app: App) -> tuple[Supervisor, list[UnitResult]]:
    units: list[UnitResult] = []
    plan = even_plan(app, {"f0": 2}, hosts.names)
    options = StreamOptions(restarts=restarts, stall=STALL, credits=2)
    return Supervisor(app, plan, hosts, options, commit=units.append, observe=observe), units


class Stopper:
    """Stops a process once data flows."""

    def __init__(self, choose) -> None:
        self.choose = choose
        self.pid: int | None = None

    def __call__(self, progress: Progress) -> None:
        if self.pid is None and len(progress.copies) == len(progress.plan.copies):
            self.pid = self.choose()
            os.kill(self.pid, signal.SIGSTOP)


@needs_proc
@pytest.mark.parametrize("restarts", BOTH)
def test_a_copy_that_is_stopped_counts_as_dead(restarts):
    app = slow_app()
    with LocalHosts(["a", "b"]) as hosts:
        stopper = Stopper(lambda: children_of(hosts.pids["b"])[0])
        run, units = supervised(hosts, restarts, stopper, app)
        if restarts:
            run.run()
            assert multiset(units) == Counter(run_here(app)["collect"])
            assert "stopped for 1 s" in run.progress.faults[0]
        else:
            with pytest.raises(TaskFailed, match="its process has been stopped for 1 s") as caught:
                run.run()
            assert "f0 1 on b" in caught.value.where
    assert_gone(stopper.pid)


@needs_proc
@pytest.mark.parametrize("restarts", BOTH)
def test_a_host_that_is_not_heard_from_counts_as_lost(restarts):
    app = slow_app()
    with LocalHosts(["a", "b", "c"]) as hosts:
        copies = children_of(hosts.pids["b"])
        run, units = supervised(hosts, restarts, Stopper(lambda: hosts.pids["b"]), app)
        if restarts:
            run.run()
            assert multiset(units) == Counter(run_here(app)["collect"])
            assert "b" not in run.plan.hosts
        else:
            with pytest.raises(TaskFailed, match="nothing was heard from the host for 1 s") as caught:
                run.run()
            assert caught.value.where.endswith("b")
    for pid in copies:
        assert_gone(pid)


def test_a_copy_that_has_just_died_is_not_stopped_and_keeps_its_status():
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = Child(CopySpec(0, "f", "f 1 on a"), pid, ours, Counters(0))
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert not _is_stopped(child)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def assert_gone(pid: int | None) -> None:
    """A process that ends or has ended."""
    assert pid is not None
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} is left")


class Forwarder:
    """Forwards connections to a port, until so many bytes have passed; then it takes nothing more."""

    def __init__(self, port: int, limit: float) -> None:
        self.left = limit
        self._target = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._open = [self._server]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                ours, _ = self._server.accept()
                theirs = socket.create_connection(("127.0.0.1", self._target))
                self._open += [ours, theirs]
                for a, b in ((ours, theirs), (theirs, ours)):
                    threading.Thread(target=self._forward, args=(a, b), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while self.left > 0:
                data = source.recv(4096)
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)
                self.left -= len(data)

    def close(self) -> None:
        for opened in self._open:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
            opened.close()


class Forwarded(LocalHosts):
    """Hosts whose first copies of `f0` are reached through a link that stalls in the first attempt."""

    forwarders: list[Forwarder]

    def receive(self, timeout: float) -> Event | None:
        event = super().receive(timeout)
        if event is not None and event["event"] == "listening" and event["copy"] == 1:
            # The hello takes a few hundred bytes, buffers of 50 bytes the rest.
            self.forwarders.append(Forwarder(event["port"], float("inf") if self.forwarders else 4000.0))
            event = event | {"port": self.forwarders[-1].port}
        return event


@contextlib.contextmanager
def forwarded() -> Iterator[Forwarded]:
    with Forwarded(["a", "b"]) as hosts:
        hosts.forwarders = []
        try:
            yield hosts
        finally:
            for forwarder in hosts.forwarders:
                forwarder.close()


@pytest.mark.parametrize("restarts", BOTH)
def test_a_link_that_takes_nothing_is_noticed(restarts):
    app = slow_app()
    with forwarded() as hosts:
        run, units = supervised(hosts, restarts, lambda progress: None, app)
        if restarts:
            run.run()
            assert multiset(units) == Counter(run_here(app)["collect"])
            assert len(hosts.forwarders) == 2
        else:
            with pytest.raises(TaskFailed, match=r"no data has moved for 1 s: .*read 1 on a is") as caught:
                run.run()
            assert caught.value.where == "made: a link stalls"


def watched(patience: float = 60.0) -> tuple[Liveness, dict[int, dict[str, object]]]:
    app = build("chain", 0, 1, [[1]])
    plan = even_plan(app, {}, ["a", "b"])
    zero = {"bytes_in": 0, "bytes_out": 0, "results": 0, "unit": 0, "busy_ns": 0, "stopped": False}
    copies = {copy.copy: zero | {"state": WAITS_CREDIT} for copy in plan.copies}
    return Liveness({copy.copy: copy for copy in plan.copies}, patience), copies


class Seconds:
    """Time that passes when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def watch(self, liveness: Liveness, copies, seconds: int, *, heard: bool = True) -> None:
        for _ in range(seconds):
            self.now += 1.0
            if heard:
                liveness.note({"copies": copies})
            liveness.check(copies)


def test_who_computes_for_long_is_not_stalled(monkeypatch: pytest.MonkeyPatch):
    clock = Seconds(monkeypatch)
    liveness, copies = watched()
    copies[1]["state"] = COMPUTING
    clock.watch(liveness, copies, 500)
    copies[1]["stopped"] = True
    with pytest.raises(Fault, match="stopped for 60 s"):
        clock.watch(liveness, copies, 70)


def test_a_supervisor_that_was_stopped_itself_blames_nobody(monkeypatch: pytest.MonkeyPatch):
    clock = Seconds(monkeypatch)
    liveness, copies = watched()
    liveness.check(copies)
    clock.now += 3600.0
    liveness.check(copies)
    with pytest.raises(Fault, match="nothing was heard"):
        clock.watch(liveness, copies, 70, heard=False)
