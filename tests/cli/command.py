"""Run the command as a user does, in a process of its own, and tell what it took."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import headrace as package
from headrace.arrays.code_cache import cache_root

SOURCE = Path(package.__file__).parents[1]
"""The tree that the tests import: the command runs from the same one, wherever the package is installed."""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str
    peak_bytes: int


def headrace(*args: str | Path, cwd: Path, env: dict[str, str] | None = None, timeout: float = 120) -> Ended:
    """`headrace ARGS` in a folder; nothing from the caller's environment but the path and the compiled code."""
    command = [sys.executable, "-m", "headrace.cli", *map(str, args)]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(cwd),
        "PYTHONPATH": str(SOURCE),
        "HEADRACE_CACHE_DIR": str(cache_root()),  # of the tests: an empty one would compile everything
        **(env or {}),
    }
    with (cwd / ".out").open("w+") as out, (cwd / ".err").open("w+") as err:
        process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        try:
            status, peak = _wait(process, timeout)
        finally:
            if process.returncode is None and process.poll() is None:
                process.kill()
                process.wait()
        out.seek(0)
        err.seek(0)
        texts = out.read(), err.read()
    (cwd / ".out").unlink()
    (cwd / ".err").unlink()
    return Ended(os.waitstatus_to_exitcode(status), *texts, peak)


def _wait(process: subprocess.Popen[bytes], timeout: float) -> tuple[int, int]:
    """Exit status and peak memory.

    What the kernel says at the end counts the memory of the process that started it as well, as it was then;
    so the peak is read while it runs, where that can be done.
    """
    until = time.monotonic() + timeout
    peak = 0
    while True:
        peak = max(peak, _peak_so_far(process.pid))
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return status, peak or usage.ru_maxrss * 1024
        if time.monotonic() > until:
            raise TimeoutError(f"still running after {timeout} s: {process.args}")
        time.sleep(0.01)


def _peak_so_far(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
