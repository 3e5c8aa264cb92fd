"""Trial runs: real processes, measured one after the other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.model.errors import BadFile, TaskFailed
from headrace.runtime.filters import App, Buffer, Filter, Output, Reader, Work
from headrace.runtime.filters_here import run_here
from headrace.runtime.spool import SpoolWriter, read_spool
from headrace.runtime.trial import FilterTrial, Trial, trial
from headrace.runtime.trial_process import Watch
from runtime.test_filters import averager, diamond, microscope  # noqa: F401 - fixtures


def burn(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


class Bytes(Reader):
    """Prepares and sends 300 buffers of 1000 bytes; each buffer has its process id."""

    def prepare(self, work: Work) -> None:
        burn(0.5)
        (work.folder / "input").write_bytes(b"x" * 300_000)
        self.file = work.folder / "input"

    def read(self, out: Output) -> None:
        with self.file.open("rb") as file:
            while data := file.read(990):
                out.send(data.ljust(990) + b"%10d" % os.getpid())


class Half(Filter):
    """Burns 2 ms of CPU and waits 4 ms for every tenth buffer; passes half of each on."""

    def init(self, work: Work) -> None:
        self.count = 0

    def process(self, buffer: Buffer, out: Output) -> None:
        self.count += 1
        if self.count % 10 == 0:
            burn(0.002)
            time.sleep(0.004)
        out.send(buffer.data[500:])


class Pids(Filter):
    def init(self, work: Work) -> None:
        self.pids: set[bytes] = set()

    def process(self, buffer: Buffer, out: Output) -> None:
        self.pids.add(buffer.data[-10:])

    def finalize(self, out: Output) -> None:
        out.send(b" ".join(sorted(self.pids)) + b"|%d" % os.getpid())


def three() -> App:
    app = App("three", buffer=1000)
    app.filter("bytes", Bytes)
    app.filter("half", Half, inputs=["bytes"])
    app.filter("pids", Pids, inputs=["half"])
    return app


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trial, Path]:
    folder = tmp_path_factory.mktemp("trial")
    return trial(three(), folder=folder), folder


def test_each_filter_runs_in_a_process_of_its_own(measured):
    ((line,), folder) = measured[0].results["pids"], measured[1]
    reader, last = line.split(b"|")
    assert len(reader.split()) == 1
    assert len({int(reader), int(last), os.getpid()}) == 3
    assert not list(folder.iterdir())


def test_volumes_are_counted(measured):
    read, half, pids = measured[0].filters
    assert (read.bytes_in, read.buffers_out, read.bytes_out) == (0, 304, 304_000)
    assert (half.bytes_in, half.buffers_in, half.bytes_out) == (304_000, 304, 152_000)
    assert (pids.bytes_in, pids.buffers_out) == (152_000, 1)


def test_time_is_the_filters_own(measured):
    read, half, _ = measured[0].filters
    assert half.cpu >= 30 * 0.002
    assert half.wall >= half.cpu * 0.9 + 30 * 0.004
    assert read.cpu < 0.5, "what prepare takes does not count"
    assert all(f.power > 0 for f in measured[0].filters)
    assert any("half had no CPU" in note for note in measured[0].notes)


def test_the_pipeline_has_what_planners_need(measured):
    pipeline = measured[0].pipeline()
    assert [f.name for f in pipeline.filters] == ["bytes", "half", "pids"]
    assert pipeline.volumes == (0.304, 0.152)
    assert [f.seconds for f in pipeline.filters] == [f.wall for f in measured[0].filters]
    assert [f.power for f in pipeline.filters] == [f.power for f in measured[0].filters]


def test_streams_of_two_filters_are_one_in_the_pipeline_and_volumes_are_per_stream():
    app = diamond("aabc")
    app.stream("upper", "join", "never used")
    made = [
        FilterTrial("letters", 1.0, 0.5, 2.0, 0, 0, 4, {"vowels": 2_000_000, "others": 1_000_000}),
        FilterTrial("upper", 2.0, 1.5, 2.0, 2, 2, 2, {"big": 3_000_000, "never used": 500_000}),
        FilterTrial("join", 3.0, 2.5, 2.0, 4, 4, 1, {"": 9_000_000}),
    ]
    pipeline = Trial(app, tuple(made), {}, clock="cpu").pipeline()
    assert [f.seconds for f in pipeline.filters] == [0.5, 1.5, 2.5]
    assert {(s.source, s.target): s.volume for s in pipeline.streams} == {
        ("letters", "upper"): 2.0,
        ("letters", "join"): 1.0,
        ("upper", "join"): 3.5,
    }


@pytest.mark.slow
def test_results_are_those_of_the_reference_runner(averager, microscope):  # noqa: F811
    for app in (
        averager.build(0.05, 30_000),
        microscope.build(microscope.Look(64, 64, 256, 512, 2), microscope.Look(0, 0, 256, 256, 1)),
        diamond("headrace", "flow"),
    ):
        assert trial(app, repeats=2).results == run_here(app)


class Breaks(Filter):
    def process(self, buffer: Buffer, out: Output) -> None:
        if buffer.data:
            raise ValueError("cannot digest this")


class Dies(Filter):
    def process(self, buffer: Buffer, out: Output) -> None:
        os._exit(7)


def broken(kind: type[Filter]) -> App:
    app = App("broken")
    app.filter("bytes", Bytes)
    app.filter("breaks", kind, inputs=["bytes"])
    return app


@pytest.mark.parametrize(
    ("app", "options", "message"),
    [
        (broken(Breaks), {}, "filter 'breaks'.*raised.*(?s:.*)ValueError: cannot digest this"),
        (broken(Dies), {}, "filter 'breaks'.*exited with 7"),
        (three(), {"spool": 100_000}, "filter 'bytes'.*would exceed 100 kB"),
    ],
)
def test_failures_name_the_filter_and_leave_nothing(app, options, message, tmp_path):
    with pytest.raises(TaskFailed, match=message):
        trial(app, folder=tmp_path, **options)
    assert not list(tmp_path.iterdir())


def test_pauses_are_not_counted(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(time, "process_time", lambda: now[0] / 2)

    def slow_items() -> Iterator[str]:
        for item in "abc":
            now[0] += 100.0
            yield item

    watch = Watch()
    watch.start()
    for _ in watch.outside(slow_items()):
        now[0] += 1.0
        with watch.paused():
            now[0] += 10.0
    watch.stop()
    assert (watch.wall, watch.cpu) == (3.0, 1.5)


def test_a_broken_spool_is_noticed(tmp_path):
    file = tmp_path / "spool"
    writer = SpoolWriter(file, 100, "x")
    for data in (b"one", b"", b"three"):
        writer.append(data)
    writer.close()
    assert list(read_spool(file, 5)) == [b"one", b"", b"three"]
    with pytest.raises(BadFile):
        list(read_spool(file, 4))
    for cut in (1, 3, 7):
        file.write_bytes(file.read_bytes()[:-cut])
        with pytest.raises(BadFile):
            list(read_spool(file, 5))


ENDLESS = """
import sys, time
from pathlib import Path
from headrace.runtime.filters import App, Reader
from headrace.runtime.trial import trial

class Endless(Reader):
    def read(self, out):
        import os
        Path(sys.argv[1], "pid").write_text(f"{os.getpid()}\\n")
        time.sleep(600)

app = App("endless")
app.filter("endless", Endless)
trial(app, folder=sys.argv[1])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_when_the_command_ends_so_do_its_processes_and_files(number, tmp_path):
    script = ENDLESS.replace("sys.argv[1]", repr(str(tmp_path)))
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as command:
        pid = int(waited(lambda: (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text().strip()))
        command.send_signal(number)
        command.wait()
    (tmp_path / "pid").unlink()
    assert waited(lambda: not Path(f"/proc/{pid}").exists() and not list(tmp_path.iterdir()))


def waited(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What the condition gives as soon as it is true."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return value
