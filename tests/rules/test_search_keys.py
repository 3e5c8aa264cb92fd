"""The keys + and - turn the search on a real terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import time
from pathlib import Path

import pytest

SEARCH = """
import select, sys, termios
from headrace.core.scheduler import Problem
from headrace.planners.search.best_first import BestFirst
from headrace.testing import random_platform, random_program

def tell(opened, score, depth):
    if not opened:
        print("ready", flush=True)
        select.select([sys.stdin], [], [], 60)

before = termios.tcgetattr(0)
search = BestFirst(hurry={hurry}, time=60, tell=tell)
plan = search.plan(Problem(random_program(4, tasks=8).graph, random_platform(4, hosts=3)))
print("hurry", search.hurry, "terminal", "same" if termios.tcgetattr(0) == before else "changed", flush=True)
"""
MOST_SECONDS = 120.0
ROOT = Path(__file__).parents[2]


class Terminal:
    """A process that has a pseudo-terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            os.execv(sys.executable, [sys.executable, *arguments])  # replaces this process
        self.text = ""

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first match in what the process has printed."""
        until = time.monotonic() + MOST_SECONDS
        while (found := re.search(pattern, self.text)) is None:
            if not select.select([self.master], [], [], max(0.0, until - time.monotonic()))[0]:
                pytest.fail(f"{pattern!r} was not printed: {self.text!r}")
            try:
                self.text += os.read(self.master, 4096).decode("utf-8", "replace")
            except OSError:  # the process has ended
                found = re.search(pattern, self.text)
                assert found is not None, self.text
                return found
        return found

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def end(self) -> int:
        """Its exit code; a process that has not ended by itself is killed."""
        until = time.monotonic() + 30
        while (ended := os.waitpid(self.pid, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    os.read(self.master, 4096)
                except OSError:
                    time.sleep(0.05)
        if ended == (0, 0):
            os.kill(self.pid, signal.SIGKILL)
            ended = os.waitpid(self.pid, 0)
        os.close(self.master)
        return os.waitstatus_to_exitcode(ended[1])


@pytest.mark.parametrize(
    ("hurry", "keys", "wanted"), [(1000, "--", 250.0), (1000, "+", 2000.0), (8, "x-+-+ -", 4.0)]
)
def test_keys_turn_hurry_and_the_terminal_is_given_back(hurry: int, keys: str, wanted: float) -> None:
    terminal = Terminal("-c", SEARCH.format(hurry=hurry))
    try:
        terminal.wait_for("ready")
        terminal.press(keys)
        found = terminal.wait_for(r"hurry (\S+) terminal (\w+)")
    finally:
        code = terminal.end()
    assert (float(found[1]), found[2], code) == (wanted, "same", 0)


@pytest.mark.slow
def test_plus_ends_a_patient_search_of_the_command() -> None:
    """Without the key the search would take ten minutes."""
    command = ("-c", "from headrace.cli import main; main()", "plan", "examples/mosaic.py:program")
    options = ("--on", "examples/lab.toml", "-s", "search", "--hurry", "0", "--time", "600")
    terminal = Terminal(*command, *options)
    try:
        terminal.wait_for("opened")
        terminal.press("+")
        terminal.wait_for("makespan")
    finally:
        code = terminal.end()
    assert code == 0
