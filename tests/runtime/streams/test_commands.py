"""Filters that are commands."""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial

import pytest

from headrace.model.errors import TaskFailed, UsageError
from headrace.runtime.filters import App, Unit
from headrace.runtime.filters_here import run_here
from headrace.runtime.streams.commands import CommandFilter

from .apps import carried_out, multiset
from .made import Collect, Numbers

TWICE = """
import struct, sys
while head := sys.stdin.buffer.read(4):
    data = sys.stdin.buffer.read(struct.unpack("!I", head)[0])
    for _ in range(40):
        sys.stdout.buffer.write(head + data)
"""


def app_with(command: list[str], framing: str, sizes: list[int]) -> App:
    app = App("commands", buffer=100_000, units=[Unit("a", {"sizes": sizes}), Unit("b", {"sizes": [3]})])
    app.filter("read", partial(Numbers, ["read-run"]))
    app.filter("run", partial(CommandFilter, command, framing), inputs=["read"])
    app.filter("collect", Collect, inputs=["run"])
    return app


def test_length_framed_commands_that_answer_more_than_they_get(hosts):
    app = app_with([sys.executable, "-c", TWICE], "length", [1000] * 50)
    results = run_here(app)["collect"]
    assert len(results) == 40 * 51
    _, units = carried_out(app, {"run": 2}, hosts)
    assert multiset(units) == Counter(results)


def test_line_framed_commands():
    app = App("lines", buffer=1000, units=[Unit("a", {"sizes": [2] * 3})])
    app.filter("read", partial(Numbers, ["read-run"]))
    app.filter("run", partial(CommandFilter, ["wc", "-l"], "lines"), inputs=["read"])
    app.filter("collect", Collect, inputs=["run"])
    (line,) = run_here(app)["collect"]
    assert int(line.split(b":")[1]) >= 3


def test_a_command_that_fails_says_so():
    fails = app_with([sys.executable, "-c", "import sys; sys.exit('bad input')"], "length", [100_000] * 30)
    with pytest.raises(TaskFailed, match="exited with 1: bad input"):
        run_here(fails)
    with pytest.raises(TaskFailed, match="ended before its input"):
        run_here(app_with([sys.executable, "-c", ""], "length", [100_000] * 30))


def test_bad_commands_are_refused():
    with pytest.raises(UsageError, match="list of words"):
        CommandFilter("ls -l")
    with pytest.raises(UsageError, match="use length or lines"):
        CommandFilter(["ls"], "json")  # type: ignore[arg-type]
