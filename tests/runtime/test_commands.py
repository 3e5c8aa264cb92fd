"""Commands, files, and names that try to be more than names."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from headrace.model.errors import TaskFailed
from headrace.model.program import Command, Program
from headrace.runtime.bodies import Job, execute_job
from headrace.runtime.cluster import Cluster
from headrace.runtime.files import FileData, Scratch
from headrace.runtime.packing import packer

from .tasks import RoundRobin, read_path

HOSTILE = [
    "a; rm -rf ~",
    "../../x",
    "-rf",
    "$(touch owned)",
    "a\nb",
    "",
    ".",
    "..",
    "/etc/passwd",
    "é" * 300,
    "{x}",
]
COPY = "import sys; open(sys.argv[2], 'wb').write(open(sys.argv[1], 'rb').read().upper())"


def run(command: Command, inputs: dict[str, object], outputs: tuple[str, ...]) -> tuple[object, ...]:
    with packer() as pack:
        job = Job("t", pack(command, "t"), tuple(inputs), outputs)
    return execute_job(job, tuple(inputs.values()))[0]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_plain_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = Command((sys.executable, "-c", COPY, f"{{{name}}}", f"{{out {name}}}"))
    (made,) = run(command, {name: b"abc"}, (f"out {name}",))
    assert made == FileData(f"out {name}", b"ABC")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_never_leave_the_folder(name: str) -> None:
    with Scratch() as scratch:
        paths = [scratch.write(name, b"x") for _ in range(3)]
        assert len(set(paths)) == 3
        assert {p.resolve().parent for p in paths} == {scratch.folder.resolve()}
        assert not any(p.name.startswith(("-", ".")) for p in paths)
        root = scratch.root
    assert not root.exists()


def test_values_become_files() -> None:
    show = "import sys, numpy; a, b = sys.argv[1:3]; print(open(a).read(), numpy.load(b).sum())"
    command = Command((sys.executable, "-c", show, "{text}", "{array}"), stdout="out")
    inputs = {"text": "grüße", "array": np.arange(4), "signal": None}
    assert run(command, inputs, ("out",)) == (FileData("out", "grüße 6\n".encode()),)


def test_other_values_are_refused() -> None:
    with pytest.raises(TaskFailed, match="item 'x': a dict cannot be passed to a command"):
        run(Command(("cat", "{x}")), {"x": {}}, ("y",))


def test_missing_output_program_and_empty_command() -> None:
    with pytest.raises(TaskFailed, match="did not write its output 'y'"):
        run(Command(("true",)), {}, ("y",))
    with pytest.raises(TaskFailed, match="'no-such-program' cannot be started"):
        run(Command(("no-such-program",)), {}, ("y",))
    with pytest.raises(TaskFailed, match="the command is empty"):
        run(Command(()), {}, ("y",))
    assert run(Command(("true",)), {}, ("t.done",)) == (None,)


def test_a_command_ended_by_a_signal() -> None:
    with pytest.raises(TaskFailed, match="ended with signal 9"):
        run(Command((sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")), {}, ("t.done",))


def test_files_go_in_through_and_out(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("pear\nfig\napple\n")
    program = Program("files")
    words = program.input("words", "words.txt")
    program.task(["sort", "{words}"], inputs=[words], outputs=["sorted"], stdout="sorted", name="sort")
    program.task(["wc", "-l", "{sorted}"], inputs=["sorted"], outputs=["count"], stdout="count", name="wc")
    program.task(read_path, inputs=["sorted"], outputs=["seen"], name="read sorted")
    program.task(read_path, inputs=[words], outputs=["raw"], name="read words")
    for item in ("sorted", "count", "seen", "raw"):
        program.output(item)
    results = cluster.execute(program, RoundRobin(), timeout=60, base=tmp_path).results
    assert results["sorted"] == FileData("sorted", b"apple\nfig\npear\n")
    assert results["count"].data == b"3 ./sorted\n"
    assert results["seen"] == " 444 False apple\nfig\npear\n"
    assert results["raw"] == ".txt 444 False pear\nfig\napple\n"
