"""Filters that raise, processes that die, hosts that are lost: the answer is right or absent."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from headrace.model.errors import TaskFailed
from headrace.runtime.filters import App, Unit
from headrace.runtime.filters_here import run_here
from headrace.runtime.streams.framing import accept, dial, listen
from headrace.runtime.streams.hosts import LocalHosts
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import even_plan
from headrace.runtime.streams.progress import Progress, UnitResult
from headrace.runtime.streams.supervisor import Supervisor

from .apps import carried_out, multiset
from .made import Collect, Numbers, Raises, Slow, build

COPIES = {"read": 2, "f0": 3, "collect": 2}


def failing(mark: Path, **how: bool) -> App:
    app = App("failing", buffer=100, units=[Unit(f"u{i}", {"sizes": [5] * 20}) for i in range(3)])
    app.filter("read", partial(Numbers, ["read-f0"]))
    app.filter("f0", partial(Raises, "u1", mark, **how), inputs=["read"])
    app.filter("collect", Collect, inputs=["f0"])
    return app


def test_a_filter_that_raises_ends_the_run_with_the_place_and_the_traceback(hosts, tmp_path):
    app = failing(tmp_path / "mark")
    units: list[UnitResult] = []
    run = Supervisor(app, even_plan(app, COPIES, hosts.names), hosts, StreamOptions(), commit=units.append)
    with pytest.raises(TaskFailed) as caught:
        run.run()
    assert "ValueError: no good" in caught.value.problem
    assert "f0 " in caught.value.where
    assert "unit 'u1'" in caught.value.where
    assert [unit.name for unit in units] == ["u0"]


@pytest.mark.parametrize("dies", [False, True])
def test_restart_replays_units_that_are_not_committed(hosts, tmp_path, dies):
    app = failing(tmp_path / "mark", dies=dies)
    progress, units = carried_out(app, COPIES, hosts, StreamOptions(restarts=1))
    assert progress.restarts == 1
    assert [unit.name for unit in units] == ["u0", "u1", "u2"]
    assert multiset(units) == Counter(run_here(app)["collect"])


def test_a_process_that_dies_is_named(hosts, tmp_path):
    with pytest.raises(TaskFailed, match="killed by signal 9") as caught:
        carried_out(failing(tmp_path / "mark", dies=True), COPIES, hosts)
    assert "f0 " in caught.value.where


@pytest.mark.slow
def test_a_lost_host_ends_the_run_or_its_work_moves():
    for restarts in (0, 1):
        with LocalHosts(["a", "b", "c"]) as hosts:
            app = build("chain", 1, 1, [[50] * 150] * 3)
            killed = False

            def kill(progress: Progress, hosts: LocalHosts = hosts) -> None:
                nonlocal killed
                if not killed:
                    killed = True
                    os.kill(hosts.pids["b"], signal.SIGKILL)

            units: list[UnitResult] = []
            app.filters["f0"] = partial(Slow, app.filters["f0"])
            plan = even_plan(app, {"f0": 2}, hosts.names)
            options = StreamOptions(restarts=restarts)
            run = Supervisor(app, plan, hosts, options, commit=units.append, observe=kill)
            if restarts:
                run.run()
                assert multiset(units) == Counter(run_here(app)["collect"])
                assert "b" not in run.plan.hosts
            else:
                with pytest.raises(TaskFailed, match="the host was lost") as caught:
                    run.run()
                assert caught.value.where.endswith("b")


def killed_at_random(hosts: LocalHosts, seed: int) -> None:
    """Kill a copy at a random moment; the results must be those of one process."""
    rng = random.Random(seed)
    app = build("chain", 1, 2, [[rng.randrange(1, 50) for _ in range(60)] for _ in range(3)])
    app.filters["f0"] = partial(Slow, app.filters["f0"])
    moment = time.monotonic() + rng.uniform(0.05, 0.6)
    stop = threading.Event()

    def kill() -> None:
        stop.wait(max(0.0, moment - time.monotonic()))
        children = [pid for agent in hosts.pids.values() for pid in children_of(agent)]
        if children:
            os.kill(rng.choice(children), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        _, units = carried_out(app, {"read": 2, "f0": 2, "collect": 2}, hosts, StreamOptions(restarts=3))
    finally:
        stop.set()
        killer.join()
    assert multiset(units) == Counter(run_here(app)["collect"])


def children_of(pid: int) -> list[int]:
    """Child processes by id: those of an agent are its copies."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_copies_killed_at_random_change_nothing(hosts):
    for seed in range(3):
        killed_at_random(hosts, seed)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_copies_killed_at_random_change_nothing_often(hosts):
    for seed in range(100, 112):
        killed_at_random(hosts, seed)


def test_strangers_are_refused():
    with listen("127.0.0.1") as server:
        answers: list[object] = []
        address = server.getsockname()[:2]
        thread = threading.Thread(
            target=lambda: [answers.append(accept(server, b"secret", None)) for _ in range(3)]
        )
        thread.start()
        with socket.create_connection(address) as stranger:
            stranger.recv(32)
            stranger.sendall(bytes(72))
            assert stranger.recv(1) == b""
        with pytest.raises(Exception, match="cannot connect"):
            dial(address, b"guess", (1, 2), None)
        link = dial(address, b"secret", (1, 2), None)
        thread.join()
        link.close()
        assert answers[:2] == [None, None]
        assert answers[2][0] == (1, 2)
        answers[2][1].close()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_nothing_is_left_behind():
    before = len(list(Path("/proc/self/fd").iterdir()))
    with LocalHosts(["a"]) as hosts:
        carried_out(build("chain", 1, 1, [[5]]), {}, hosts)
        pids = list(hosts.pids.values())
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
