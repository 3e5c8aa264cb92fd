"""A disk that fills up during a run: it says so, waits, and goes on when there is room; nothing there is lost."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace.model.program import Program
from headrace.record import Record
from headrace.runtime.cluster import Cluster

from .tasks import wait_for_file


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: str, value: int) -> int:
    """Leave no room on the disk of a folder, when the first result is there."""
    wait_for_file(f"{folder}/start.json")
    with suppress(OSError), (Path(folder) / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1024))
    return value + 1


def large(value: int) -> np.ndarray:
    return np.full(50_000, value)


def filling(folder: Path) -> Program:
    """start -> fill the disk -> a large result, and a small one that was there before."""
    program = Program("filling")
    place = program.input("place", value=str(folder))
    start = program.task(abs, inputs=[program.input("n", value=-4)], outputs=["start"], name="start")
    full = program.task(fill, inputs=[place, start], outputs=["full"], name="fill")
    program.output(program.task(large, inputs=[full], outputs=["large"], name="large"), "large.npy")
    program.output("start", "start.json")
    return program


def test_a_run_waits_for_room_and_goes_on(cluster: Cluster, tmp_path: Path, small_disk: Path) -> None:
    """Results and record are on the disk that fills up."""
    said: list[str] = []

    def make_room(text: str) -> None:
        said.append(text)
        if "waiting" in text:
            (small_disk / "filler").unlink()

    home = small_disk / "home"
    done = hr.run(
        filling(small_disk), cluster, "dask", record=home, output=small_disk, learn=False, say=make_room
    )
    assert done.failure is None
    assert [text for text in said if text.startswith("no room for")]
    np.testing.assert_array_equal(np.load(small_disk / "large.npy"), np.full(50_000, 5))
    assert (small_disk / "start.json").read_text() == "4\n"
    with Record.open(home) as record:
        assert record.last().status == "done"
        assert {row.item for row in record.results("last")} == {"large", "start"}


def test_a_run_that_finds_no_room_is_resumed_later(
    cluster: Cluster, tmp_path: Path, small_disk: Path
) -> None:
    program, home = filling(small_disk), tmp_path / "home"
    options = {"record": home, "output": small_disk, "learn": False, "disk_wait": 0.5}
    failed = hr.run(program, cluster, "dask", **options)
    assert failed.failure is not None
    assert "large.npy: cannot be written: No space left" in str(failed.failure)
    assert failed.failure.exit_code == 1
    assert set(failed.files) == {"start"}
    assert not list(small_disk.glob("*large*"))
    (small_disk / "filler").unlink()
    done = hr.resume("last", program, record=home)  # no worker is needed
    assert done.failure is None
    assert len(done.reused) == 3
    np.testing.assert_array_equal(np.load(small_disk / "large.npy"), np.full(50_000, 5))
