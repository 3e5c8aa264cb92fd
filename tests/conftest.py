"""What all tests need."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# The same examples in every run, so that a failure is that of a change; HEADRACE_RANDOM=1 looks for new ones.
settings.register_profile("same", derandomize=not os.environ.get("HEADRACE_RANDOM"), deadline=None)
settings.load_profile("same")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # In the background of a script an interrupt is ignored, and so it would be in every command that a test
    # starts and interrupts. A handler set here is not inherited by them.
    signal.signal(signal.SIGINT, signal.default_int_handler)

SLOW_SECONDS = 5.0
"""CPU time, with that of child processes, above which a test belongs to the slow tier."""
_CPU = "cpu seconds"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = sum(os.times()[:4])
    yield
    item.user_properties.append((_CPU, sum(os.times()[:4]) - before))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List tests that should be marked `slow`."""
    reports = [
        r for r in terminalreporter.getreports("passed") if r.when == "call" and "slow" not in r.keywords
    ]
    taken = [(dict(report.user_properties).get(_CPU, 0.0), report.nodeid) for report in reports]
    if found := sorted(((cpu, name) for cpu, name in taken if cpu > SLOW_SECONDS), reverse=True):
        terminalreporter.section("not marked slow, but they are")
        for cpu, name in found:
            terminalreporter.line(f"{cpu:6.1f} s of CPU time  {name}")
