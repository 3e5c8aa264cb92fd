"""Run the command as a user does, in a process of its own, and tell what it took."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str
    peak_bytes: int


def headrace(*args: str | Path, cwd: Path, env: dict[str, str] | None = None, timeout: float = 120) -> Ended:
    """`headrace ARGS` in a folder; nothing from the caller's environment but the path."""
    command = [sys.executable, "-m", "headrace.cli", *map(str, args)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), **(env or {})}
    with (cwd / ".out").open("w+") as out, (cwd / ".err").open("w+") as err:
        process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        try:
            _, status, usage = _wait(process, timeout)
        finally:
            if process.returncode is None and process.poll() is None:
                process.kill()
                process.wait()
        out.seek(0)
        err.seek(0)
        texts = out.read(), err.read()
    (cwd / ".out").unlink()
    (cwd / ".err").unlink()
    return Ended(os.waitstatus_to_exitcode(status), *texts, usage.ru_maxrss * 1024)


def _wait(process: subprocess.Popen[bytes], timeout: float) -> tuple[int, int, object]:
    import time

    until = time.monotonic() + timeout
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return pid, status, usage
        if time.monotonic() > until:
            raise TimeoutError(f"still running after {timeout} s: {process.args}")
        time.sleep(0.01)
