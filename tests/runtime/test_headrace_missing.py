"""Dask clusters on which Headrace is not installed: the error says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import distributed
import pytest
from distributed import Client

import headrace as hr
from headrace.dask import SteeringWarning, steering
from headrace.model.errors import HeadraceError


@pytest.fixture
def without_headrace(tmp_path: Path) -> dict[str, str]:
    """The variables of a Python that has everything but headrace; it must be started with -S."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for entry in Path(distributed.__file__).parents[1].iterdir():
        if "headrace" not in entry.name and entry.suffix != ".pth":
            (packages / entry.name).symlink_to(entry)
    return {**os.environ, "PYTHONPATH": str(packages)}


def start(module: str, environment: dict[str, str], *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-S", "-m", f"distributed.cli.{module}", *map(str, arguments), "--no-dashboard"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


@pytest.mark.parametrize("lacking", ["worker", "scheduler"])
def test_the_error_names_what_to_install(
    lacking: str, without_headrace: dict[str, str], tmp_path: Path
) -> None:
    import_paths = os.pathsep.join([str(Path(hr.__file__).parents[1]), without_headrace["PYTHONPATH"]])
    complete = {**without_headrace, "PYTHONPATH": import_paths}
    of = {"scheduler": complete, "worker": complete} | {lacking: without_headrace}
    probe = [sys.executable, "-S", "-c", "import distributed, headrace"]
    assert subprocess.run(probe, env=of[lacking], capture_output=True, check=False).returncode == 1
    contact = tmp_path / "contact.json"
    processes = [
        start("dask_scheduler", of["scheduler"], "--host", "127.0.0.1", "--port", 0, "--scheduler-file", contact),
        start("dask_worker", of["worker"], "--scheduler-file", contact, "--no-nanny", "--name", "bare",
              "--nthreads", 1, "--local-directory", tmp_path / "worker"),
    ]  # fmt: skip
    try:
        program = hr.Program("one")
        program.output(program.task(lambda: 42, outputs=["answer"]))
        with Client(address_in(contact), set_as_default=False, timeout=30) as client:
            client.wait_for_workers(1, timeout=60)
        with pytest.raises(HeadraceError) as caught:
            hr.run(program, on=address_in(contact), record=tmp_path / "record", output=tmp_path)
        text = str(caught.value)
        assert (
            f"headrace is not installed for {'the scheduler' if lacking == 'scheduler' else 'worker bare'}"
            in text
        )
        assert "install the same version of headrace" in text
        assert caught.value.exit_code == 2
        if lacking == "scheduler":
            with (
                Client(address_in(contact), set_as_default=False, timeout=30) as client,
                pytest.warns(SteeringWarning, match="headrace is not installed for the scheduler"),
                steering(client, record=tmp_path / "record"),
            ):
                assert client.submit(max, 1, 2).result() == 2
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def address_in(contact: Path) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if contact.exists() and contact.read_text():
            return str(json.loads(contact.read_text())["address"])
        time.sleep(0.05)
    raise AssertionError("no scheduler")
