"""Files and folders as items of real runs: staged between workers, sent by the client, kept, resumed, made again."""

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.core.scheduler import Assign, WakeConditions
from headrace.core.view import RunView
from headrace.formats.loading import load_program
from headrace.model.errors import UsageError
from headrace.model.events import DataMoved, Event
from headrace.runtime import execute
from headrace.runtime.cluster import Cluster, open_local
from headrace.runtime.files import StagedFile
from headrace.runtime.input_files import InputFile, seen_folders
from headrace.runtime.run_policy import RunPolicy

MB = 1_000_000
EXAMPLE = Path(__file__).parents[2] / "examples" / "words" / "words.json"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with open_local(2) as opened:
        opened.client.run(forget_links)
        yield opened


def forget_links() -> None:
    """On a worker: behave as if other workers were on other machines."""
    from headrace.runtime import dask_files

    dask_files._taken_here = lambda *arguments: False


def pattern(size: int) -> bytes:
    return (bytes(range(256)) * (size // 256 + 1))[:size]


def make(size: int) -> hr.File:
    path = hr.task_folder() / "made.bin"
    path.write_bytes(pattern(size))
    return hr.File(path)


def read(path: Path) -> tuple[int, bool, str]:
    time.sleep(0.4)  # so that both workers have one of them
    data = path.read_bytes()
    return len(data), data == pattern(len(data)), path.name


def two_readers(size: int) -> hr.Program:
    program = hr.Program("readers")
    made = program.task(lambda: make(size), outputs={"made": size}, work=0.05, name="make")
    for i in range(2):
        program.output(program.task(read, inputs=[made], outputs=[f"r{i}"], work=0.5))
    return program


def go(program: hr.Program, cluster: Cluster, folder: Path, scheduler: Any = "heft", **more: Any) -> Any:
    return hr.run(program, on=cluster, scheduler=scheduler, record=folder / "record", output=folder, **more)


def moved(run: Any) -> float:
    return sum(event.size for event in run.outcome.events if isinstance(event, DataMoved))


class Placed:
    """Each task on the host that is told: the same on every machine."""

    name = "placed"
    wake = WakeConditions(ready=1)

    def __init__(self, hosts: dict[str, str]) -> None:
        self.hosts = hosts

    def react(self, view: RunView, events: Sequence[Event]) -> list[Assign]:
        names = [view.graph.task_names[task] for task in view.ready().tolist()]
        return [Assign(name, self.hosts.get(name, "w0"), rank=view.time) for name in names]


def test_a_large_file_is_streamed_from_worker_to_worker(cluster: Cluster, tmp_path: Path) -> None:
    size = 5 * MB + 17
    run = go(two_readers(size), cluster, tmp_path)
    assert run.failure is None
    assert run.results == {f"r{i}": (size, True, "made.bin") for i in range(2)}
    assert size <= moved(run) < size + 1000


def test_inputs_are_sent_to_the_workers_that_ask(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the workers did not see the client's files: a file and a folder."""
    monkeypatch.setattr("headrace.runtime.execute.seen_folders", lambda *_, **__: {})
    (tmp_path / "big").write_bytes(pattern(3 * MB))
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    (tmp_path / "tree" / "sub" / "a").write_text("hello")
    (tmp_path / "tree" / "link").symlink_to("sub/a")
    (tmp_path / "tree" / "empty").touch()
    program = hr.Program("sent")
    big = program.input("big", tmp_path / "big")
    tree = program.input("tree", tmp_path / "tree")
    program.output(program.task(read, inputs=[big], outputs=["size"], work=0.5))
    program.output(
        program.task(
            lambda t: sorted(str(p.relative_to(t)) for p in t.rglob("*")), inputs=[tree], outputs=["names"]
        )
    )
    program.output(
        program.task(["cat", "{tree}/link"], inputs=[tree], outputs=["text"], stdout="text"), "text.txt"
    )
    run = go(program, cluster, tmp_path)
    assert run.failure is None
    assert run.results["size"] == (3 * MB, True, "big")
    assert run.results["names"] == ["empty", "link", "sub", "sub/a"]
    assert (tmp_path / "text.txt").read_text() == "hello"


def damage(path: Path) -> int:
    """Change a byte of the content in the store of this worker, unnoticed by its size and times."""
    from headrace.runtime.dask_files import store_here

    store = store_here()
    assert store is not None
    content = next(c for c in store._contents.values() if c.owned)
    before = content.path.stat()
    content.path.chmod(0o600)
    with content.path.open("r+b") as file:
        file.seek(MB)
        file.write(b"!")
    os.utime(content.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return 1


def test_a_damaged_copy_is_made_again(cluster: Cluster, tmp_path: Path) -> None:
    """The only copy is damaged before it is sent: the receiver notices, its task is executed again."""
    program = hr.Program("damaged")
    runs = tmp_path / "runs"

    def once() -> hr.File:
        with runs.open("a") as file:
            file.write("x")
        return make(4 * MB)

    made = program.task(once, outputs={"made": 4 * MB}, work=0.01)
    first = program.task(damage, inputs=[made], outputs=["first"], work=0.01)
    program.output(
        program.task(lambda p, _: read(p), inputs=[made, first], outputs=["read"], work=0.5, name="reader")
    )
    placed = Placed({"reader": "w1"})
    run = go(program, cluster, tmp_path, scheduler=placed, keep="results")
    assert run.failure is None
    assert run.results["read"] == (4 * MB, True, "made.bin")
    assert runs.read_text() == "xx"


def test_results_are_files_and_folders(cluster: Cluster, tmp_path: Path) -> None:
    program = hr.Program("results")
    folder = program.task(["mkdir", "-p", "{out}/a/b"], outputs=["out"], work=0.01)
    program.output(folder, "made/out")
    program.output(program.task(lambda: make(2 * MB), outputs=["big"], work=0.01), "big.bin")
    run = go(program, cluster, tmp_path)
    assert run.failure is None
    assert (tmp_path / "made" / "out" / "a" / "b").is_dir()
    assert (tmp_path / "big.bin").read_bytes() == pattern(2 * MB)
    assert os.access(tmp_path / "big.bin", os.W_OK)
    big = run.results["big"]
    assert isinstance(big, StagedFile)
    assert Path(big.path) == tmp_path / "big.bin"
    again = go(program, cluster, tmp_path)
    assert "not empty" in str(again.failure) or not any((tmp_path / "made" / "out").iterdir())


def test_commands_of_a_workflow_file(cluster: Cluster, tmp_path: Path) -> None:
    program = load_program(EXAMPLE, commands=True)
    run = go(program, cluster, tmp_path)
    assert run.failure is None
    words = (EXAMPLE.parent / "words.txt").read_text().split()
    counted = [line.split() for line in (tmp_path / "counts.txt").read_text().splitlines()]
    assert {word: int(number) for number, word in counted} == Counter(words)


def test_inputs_in_shared_folders_are_read_in_place(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(pattern(MB))
    program = hr.Program("in place")
    big = program.input("big", tmp_path / "big")
    program.output(program.task(lambda path: str(path.resolve()), inputs=[big], outputs=["where"]))
    run = go(program, cluster, tmp_path)
    assert run.results["where"] == str((tmp_path / "big").resolve())


def test_who_sees_an_input() -> None:
    lab = hr.Platform(
        (hr.Site("uw", (hr.Host("a"),), shared_folders=("/data",)), hr.Site("home", (hr.Host("b"),)))
    )
    seen = seen_folders(lab, ["/scratch"], here=False)
    found = {
        (path, host): InputFile("x", "x", "t", path, shared=seen).is_seen_by(host)
        for path in ("/data/x", "/data2/x", "/scratch/x", "/home/x")
        for host in ("a", "b")
    }
    assert [key for key, sees in found.items() if sees] == [
        ("/data/x", "a"),
        ("/scratch/x", "a"),
        ("/scratch/x", "b"),
    ]
    with pytest.raises(UsageError, match="absolute"):
        RunPolicy(shared=("data",))


def test_an_input_that_has_changed_is_not_used(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changes after the run has begun, before a worker asks for it."""
    path = tmp_path / "big"
    path.write_bytes(pattern(MB))
    program = hr.Program("changed")
    big = program.input("big", path)
    program.output(program.task(read, inputs=[big], outputs=["size"]))

    def change(*given: Any) -> Any:
        path.write_bytes(b"x")
        return plugin(*given)

    plugin = execute._Attempt._plugin
    monkeypatch.setattr(execute, "seen_folders", lambda *_, **__: {})
    monkeypatch.setattr(execute._Attempt, "_plugin", change)
    run = go(program, cluster, tmp_path)
    assert "has changed since the run began" in str(run.failure)


def test_files_without_a_record(cluster: Cluster) -> None:
    program = hr.Program("bare")
    program.output(program.task(lambda: make(2 * MB), outputs=["big"], work=0.01))
    outcome = cluster.execute(program)
    assert Path(outcome.results["big"].path).read_bytes() == pattern(2 * MB)


def test_nothing_stays_on_the_workers(cluster: Cluster, tmp_path: Path) -> None:
    go(two_readers(MB), cluster, tmp_path)

    def left(dask_worker: Any) -> list[str]:
        folder = Path(dask_worker.local_directory) / "headrace-files"
        handlers = [name for name in dask_worker.handlers if name.startswith("headrace")]
        return [*handlers, *(str(path) for path in folder.rglob("*"))]

    end = time.monotonic() + 10
    while any(cluster.client.run(left).values()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(cluster.client.run(left).values())


def test_a_task_that_changes_its_input_fails(cluster: Cluster, tmp_path: Path) -> None:
    def spoil(path: Path) -> int:
        path.chmod(0o600)
        with path.open("ab") as file:
            file.write(b"more")
        return 1

    program = hr.Program("spoils")
    made = program.task(lambda: make(MB), outputs=["made"], work=0.01)
    program.output(program.task(spoil, inputs=[made], outputs=["x"], work=0.01))
    run = go(program, cluster, tmp_path)
    assert "has changed while it ran" in str(run.failure)


@pytest.mark.parametrize("reached", [True, False])
def test_kept_files_are_not_made_again(cluster: Cluster, tmp_path: Path, reached: bool) -> None:
    """A run that fails and is resumed; with and without a record that workers can reach."""
    runs, fail = tmp_path / "runs", tmp_path / "fail"
    fail.touch()
    (tmp_path / "in").write_bytes(pattern(MB))

    def last(path: Path) -> int:
        if fail.exists():
            raise ValueError("not yet")
        return path.stat().st_size

    program = hr.Program("kept")
    given = program.input("in", tmp_path / "in")
    made = program.task(lambda path: counted(runs), inputs=[given], outputs=["made"], work=0.01)
    program.output(made, "made.bin")
    program.output(program.task(last, inputs=[made], outputs=["size"], work=0.01), "size.json")
    record = tmp_path / "record"
    if not reached:
        cluster.client.run(reach_nothing)
    try:
        first = go(program, cluster, tmp_path)
        assert "not yet" in str(first.failure)
        assert (tmp_path / "made.bin").read_bytes() == pattern(MB)
        fail.unlink()
        done = hr.resume(first.id, program, record=record, on=cluster)
    finally:
        cluster.client.run(reach_again)
    assert done.failure is None
    assert done.results["size"] == MB
    assert runs.read_text() == "x"


def counted(runs: Path) -> hr.File:
    with runs.open("a") as file:
        file.write("x")
    return make(MB)


def reach_nothing(dask_worker: Any) -> None:
    """On a worker: behave as if the record's folder were on another machine."""
    from headrace.runtime import commit

    dask_worker.reaches = commit.reaches
    commit.reaches = lambda folder, token: False


def reach_again(dask_worker: Any) -> None:
    from headrace.runtime import commit

    if hasattr(dask_worker, "reaches"):
        commit.reaches = dask_worker.reaches


def test_a_damaged_kept_file_is_made_again(cluster: Cluster, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    program = hr.Program("flip")
    program.output(program.task(lambda: counted(runs), outputs=["made"], work=0.01), "made.bin")
    first = go(program, cluster, tmp_path)
    kept = next(p for p in (tmp_path / "record" / "kept" / first.id).iterdir() if p.stat().st_size == MB)
    kept.chmod(0o600)
    with kept.open("r+b") as file:
        file.seek(777)
        file.write(b"\xff\x00")
    (tmp_path / "made.bin").unlink()
    again = hr.resume(first.id, program, record=tmp_path / "record", on=cluster)
    assert again.failure is None
    assert (tmp_path / "made.bin").read_bytes() == pattern(MB)
    assert runs.read_text() == "xx"


@pytest.mark.slow
def test_a_lost_copy_is_made_again(tmp_path: Path) -> None:
    """The worker that made a file dies while others wait for it."""
    size = 3 * MB
    killed = tmp_path / "killed"

    def read_or_kill(path: Path) -> tuple[int, bool, str]:
        if not killed.exists():
            killed.touch()
            os.kill(os.getpid(), 9)
        return read(path)

    program = hr.Program("lost")
    made = program.task(lambda: make(size), outputs={"made": size}, work=0.05)
    for i in range(4):
        program.output(program.task(read_or_kill, inputs=[made], outputs=[f"r{i}"], work=0.5))
    with open_local(2) as cluster:
        cluster.client.run(forget_links)
        run = go(program, cluster, tmp_path)
    assert run.failure is None
    assert set(run.results.values()) == {(size, True, "made.bin")}
    assert killed.exists()


def peak_memory() -> int:
    """On a worker: the largest resident size of this process so far, in kB; counted from now on."""
    status = Path("/proc/self/status").read_text()
    Path("/proc/self/clear_refs").write_text("5")
    return int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured by Linux")
def test_memory_stays_bounded(tmp_path: Path) -> None:
    """300 MB from worker to worker and to a result: neither the workers nor this process hold it."""
    size = 300 * MB

    def large() -> hr.File:
        path = hr.task_folder() / "large"
        with path.open("wb") as file:
            for _ in range(300):
                file.write(pattern(MB))
        return hr.File(path)

    def count(path: Path) -> int:
        time.sleep(1)
        return path.stat().st_size

    program = hr.Program("large")
    made = program.task(large, outputs={"made": size}, work=1.0)
    program.output(made, "large.bin")
    for i in range(2):
        program.output(program.task(count, inputs=[made], outputs=[f"r{i}"], work=5.0, name=f"r{i}"))
    with open_local(2) as cluster:
        cluster.client.run(forget_links)
        go(two_readers(2 * MB), cluster, tmp_path)  # loads code
        before = {**cluster.client.run(peak_memory), "here": peak_memory()}
        before = {**cluster.client.run(peak_memory), "here": peak_memory()}
        placed = Placed({"r1": "w1"})
        run = go(program, cluster, tmp_path, scheduler=placed)
        after = {**cluster.client.run(peak_memory), "here": peak_memory()}
    assert run.failure is None
    assert (run.results["r0"], run.results["r1"]) == (size, size)
    assert size <= moved(run) < size + 1000
    assert (tmp_path / "large.bin").stat().st_size == size
    growth = {name: (after[name] - before[name]) / 1000 for name in before}
    assert max(growth.values()) < 60, growth
