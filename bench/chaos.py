"""Real runs under faults, every value compared with a plain computation: python -m bench.chaos --runs 200 --seed 1.

Each run has a random program, a random scheduler and a cluster of real worker processes, local or TLS. While it runs,
workers are killed, stopped, continued, joined, retired, restarted, paused and cut off at random, and at least one is
left alone; or the scheduler or the client is killed, and the run is resumed. A run hangs if it takes longer than
--limit seconds, and is aborted if it ends with an error. Runs are made in a process of their own, so that one that
hangs can be ended; what is left behind after a run is counted and ended too.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, Self

from bench.chaos_clusters import remove_namespaces
from bench.chaos_runs import KINDS, LIMIT, Verdict, disturbed_run, warm_up
from bench.tools import print_rows

_GRACE = 60.0
"""Seconds that a run may take beyond its limit, for starting and closing clusters."""
_SUBREAPER = 36
OUTCOMES = ("right", "wrong", "hang", "abort", "skipped")


class Runner:
    """A process that makes runs, one after another; it is replaced when one of them hangs."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.limit = limit
        self._process: subprocess.Popen[str] | None = None

    def run(self, seed: int, kind: str = "") -> Verdict:
        """Make one run."""
        adopt_orphans()
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([seed, kind, self.limit]) + "\n")
        self._process.stdin.flush()
        try:
            line = self._lines.get(timeout=self.limit + _GRACE)
        except queue.Empty:
            line = ""
            os.kill(self._process.pid, signal.SIGUSR1)  # it shows where it is
            time.sleep(1.0)
        if line:
            fields = json.loads(line)
            return Verdict(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})
        died = self._process.poll() is not None
        self.close()
        return Verdict(seed, kind or "?", "?", "abort" if died else "hang", error="the process of the run")

    def _start(self) -> None:
        tag = f"{os.getpid() % 2**20:x}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.chaos", "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"HEADRACE_CHAOS_TAG": tag},
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, args=(self._process, self._lines), daemon=True).start()
        self._lines.get()

    @staticmethod
    def _read(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put("")

    def close(self) -> None:
        """End the process and everything that it has started."""
        process, self._process = self._process, None
        if process is None:
            return
        ours = _descendants(process.pid)
        process.kill()
        process.communicate()
        for each in ours:
            with suppress(Exception):
                each.kill()
        remove_namespaces(f"{os.getpid() % 2**20:x}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve() -> None:
    """Make the runs that standard input asks for; one line of JSON each on standard output."""
    adopt_orphans()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what others print must not mix with the answers
    warm_up()
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        seed, kind, limit = json.loads(line)
        verdict = disturbed_run(seed, limit, kind)
        left = left_behind()
        answers.write(json.dumps(asdict(replace(verdict, left=left))) + "\n")
        answers.flush()


def adopt_orphans() -> None:
    """Become the parent of processes whose parents die, so that none is overlooked. Linux only."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def left_behind(patience: float = 5.0) -> tuple[str, ...]:
    """Processes that a run has left behind, after a moment in which they may still end; they are ended by id."""
    end = time.monotonic() + patience
    while (left := _descendants(os.getpid())) and time.monotonic() < end:
        time.sleep(0.1)
    names = []
    for process in left:
        with suppress(Exception):
            names.append(" ".join(process.cmdline())[:200])
            process.kill()
    return tuple(names)


def _descendants(pid: int) -> list[Any]:
    """All processes below one that have not ended; ended ones are collected."""
    import psutil  # type: ignore[import-untyped]

    living = []
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                living.append(process)
            elif process.ppid() == os.getpid():
                with suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
    return living


def show(verdicts: list[Verdict]) -> int:
    """Print tables by kind of run and by fault, and the counts; returns how many runs went wrong."""
    for what, values in (
        ("run", [(v.kind, v) for v in verdicts]),
        ("fault", [(each, v) for v in verdicts for each in sorted(set(v.did))]),
    ):
        rows = []
        for name in sorted({name for name, _ in values}):
            mine = [v for each, v in values if each == name]
            times = sum(v.did.count(name) for v in mine) if what == "fault" else len(mine)
            counts = Counter(v.outcome for v in mine)
            rows.append([name, times, len(mine), *(counts[outcome] for outcome in OUTCOMES)])
        print_rows([what, "times", "runs", *OUTCOMES], rows)
    counts = Counter(v.outcome for v in verdicts)
    again = sum(max(0, v.executions - v.tasks) for v in verdicts)
    left, tasks = sum(bool(v.left) for v in verdicts), sum(v.tasks for v in verdicts)
    noticed = max((v.noticed for v in verdicts), default=0.0)
    print(
        f"{len(verdicts)} runs: {counts['right']} right, {counts['wrong']} wrong, {counts['hang']} hangs, "
        f"{counts['abort']} aborts, {counts['skipped']} skipped; {left} left processes behind; {again} of {tasks} "
        f"tasks ran again; the loss of a scheduler was noticed after {noticed:.1f} s at most"
    )
    return sum(v.outcome not in ("right", "skipped") or bool(v.left) for v in verdicts)


def main(runs: int, seed: int, limit: float = LIMIT, kind: str = "") -> int:
    """Make runs and print them; returns how many went wrong."""
    verdicts: list[Verdict] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the runner, and what it started, end too
    with Runner(limit) as runner:
        for number in range(runs):
            verdicts.append(runner.run(seed + number, kind))
            print(f"{number + 1} of {runs}: {verdicts[-1]}", file=sys.stderr, flush=True)
    return show(verdicts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--kind", choices=["", *KINDS], default="")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
    else:
        sys.exit(1 if main(given.runs, given.seed, given.limit, given.kind) else 0)
