"""`headrace trial --on URL`: one host of each class is measured, and `headrace deploy` reads what it writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from cli.command import headrace
from headrace.model.errors import HeadraceError
from headrace.model.pipeline import Pipeline
from headrace.model.platform import Platform
from headrace.runtime.filters import App, Filter, Reader
from headrace.runtime.packing import packer
from headrace.runtime.trial import FilterTrial, Trial
from headrace.runtime.trial_cluster import ClusterTrial, HostClass, host_traits, measure_here

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = f"""
import sys
sys.path.insert(0, {str(EXAMPLES)!r})
from averager import build
app = build(2.0, 50_000)
"""


def start(module: str, *arguments: object, **more: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)} | more
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{module}", *map(str, arguments), "--no-dashboard"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A scheduler with the alike workers a and b; c emulates a quarter of their speed, and d has two threads."""
    contact = tmp_path / "scheduler.json"
    local = ("--protocol", "tcp", "--host", "127.0.0.1")
    processes = [start("dask_scheduler", *local, "--port", 0, "--scheduler-file", contact)]
    try:
        slow = {"HEADRACE_SPEED": "1", "HEADRACE_STRETCH": "4"}
        for name, threads, speed in (("a", 1, {}), ("b", 1, {}), ("c", 1, slow), ("d", 2, {})):
            processes.append(
                start("dask_worker", "--scheduler-file", contact, "--name", name, "--nthreads", threads,
                      "--host", "127.0.0.1", "--local-directory", tmp_path / name, **speed)
            )  # fmt: skip
        end = time.monotonic() + 60
        while not (contact.exists() and contact.read_text()):
            assert time.monotonic() < end
            time.sleep(0.05)
        yield _with_workers(str(json.loads(contact.read_text())["address"]), 4)
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _with_workers(address: str, number: int) -> str:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(number, timeout=60)
    return address


@pytest.mark.slow
def test_one_host_of_each_class(address: str, tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(SMALL)
    files = ("-o", "p.ini", "--platform-output", "lab.toml")
    done = headrace(
        "trial", "small.py:app", "--on", address, "--clock", "cpu", *files, "--json", cwd=tmp_path
    )
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert [found["hosts"] for found in said["classes"]] == [["a", "b"], ["c"], ["d"]]
    assert ["2 threads" in found["class"] for found in said["classes"]] == [False, False, True]
    assert all(power == 1.0 for power in said["classes"][0]["powers"].values())
    assert all(power < 0.6 for power in said["classes"][1]["powers"].values())
    pipeline, lab = Pipeline.read(tmp_path / "p.ini"), Platform.read(tmp_path / "lab.toml")
    assert [f.power for f in pipeline.filters] == [1.0, 1.0, 1.0]
    speeds = {h.name: h.speed_for("ArrayAdder") for h in lab.hosts}
    assert speeds["a"] == speeds["b"] == 1.0
    assert speeds["c"] == pytest.approx(said["classes"][1]["powers"]["ArrayAdder"])
    made = headrace("deploy", "p.ini", "--on", "lab.toml", "--source", "a", "--json", cwd=tmp_path)
    assert made.code == 0, made.err
    assert json.loads(made.out)["throughput"] > 0


class Numbers(Reader):
    def read(self, out):
        for i in range(50):
            out.send(b"%d" % i)


class Broken(Filter):
    def process(self, buffer, out):
        raise ValueError("no such number")


def broken() -> App:
    app = App("broken", buffer="1 kB")
    app.filter("numbers", Numbers)
    app.filter("broken", Broken, inputs=["numbers"])
    return app


def test_a_failure_on_a_host_is_reported() -> None:
    with packer() as pack:
        report = measure_here(pack(broken(), "broken"), 1, "cpu", 10**6)
        with pytest.raises(HeadraceError, match="not an App"):
            measure_here(pack([1], "a list"), 1, "cpu", 10**6)
    assert "no such number" in report["problem"]


def test_powers_are_relative_to_the_first_class() -> None:
    def measured(seconds: float) -> Trial:
        filters = [
            FilterTrial("numbers", seconds, seconds, 1.0, 0, 0, 1, {"numbers->broken": 10**6}),
            FilterTrial("broken", 2 * seconds**2, 0.0, 1.0, 10**6, 1, 0, {"": 0}),
        ]
        app = broken()
        sent = {app.streams[0].name: 10**6}
        return Trial(app, (FilterTrial("numbers", seconds, seconds, 1.0, 0, 0, 1, sent), filters[1]), {})

    made = ClusterTrial(
        broken(), (HostClass("x", ("h0",), measured(1.0)), HostClass("y", ("h1",), measured(2.0)))
    )
    assert made.powers(1) == {"reader": 0.5, "broken": 0.25}
    platform = made.platform(Platform.pairwise([7.0, 9.0, 3.0], bandwidth=1e6))
    assert platform.hosts[1].kinds == {"reader": 0.5, "broken": 0.25}
    assert platform.hosts[2].speed == 3.0
    assert made.pipeline().reader.seconds == 1.0


def test_hosts_with_other_threads_are_of_another_class() -> None:
    one, two = (SimpleNamespace(state=SimpleNamespace(nthreads=n)) for n in (1, 2))
    assert host_traits(one) == host_traits(one) != host_traits(two)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--on", "nowhere"], "not the address of a cluster"),
        (["--on", "tcp://10.0.0.1:8786"], "unencrypted"),
        (["--platform-output", "x.toml"], "give --on URL"),
    ],
)
def test_errors(arguments: list[str], words: str, tmp_path: Path) -> None:
    done = headrace("trial", f"{EXAMPLES}/averager.py", *arguments, cwd=tmp_path)
    assert done.code == 2
    assert words in done.err
