"""Logs of simulated runs as records and traces: nothing of the log is missing, and names of any kind survive."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.platform import Platform
from headrace.report.chrome_trace import simulated_trace
from headrace.report.run_log import KEYS, log_entries, log_entry, log_text, stopped_executions
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.run import SimulatedRun
from headrace.simulator.events.simulate import simulate_program
from headrace.simulator.events.trace import _WORDS, log_word
from headrace.testing.generate import random_program

LAB = Platform.pairwise([2.0, 1.0, 1.0], bandwidth=1e6)


def lossy_run(seed: int) -> SimulatedRun:
    """A run in which a host leaves while it is busy."""
    program = random_program(seed=seed, tasks=30, shape="fork-join")
    return simulate_program(program, LAB, "lheft", SimulationConfig(faults="kill=h1@40%"), seed=seed)


def test_every_event_has_keys() -> None:
    assert set(_WORDS.values()) | {"rule-dropped"} == set(KEYS)


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=1), st.text(min_size=1), st.floats(0, 1e9))
def test_names_survive(item: str, place: str, time: float) -> None:
    entry = log_entry(f"{time!r} drop {log_word(item)} {log_word(place)}")
    assert entry == {"time": time, "event": "drop", "item": item, "place": place}


@pytest.mark.parametrize("seed", range(4))
def test_json_lines_have_what_the_text_has(seed: int) -> None:
    run = lossy_run(seed)
    entries = [json.loads(line) for line in log_text(run, Path("run.jsonl")).splitlines()]
    words = [line.split() for line in log_text(run, Path("run.log")).splitlines()]
    assert entries == list(log_entries(run))
    assert [(e["time"], e["event"]) for e in entries] == [(float(w[0]), w[1]) for w in words]


@pytest.mark.parametrize("seed", range(4))
def test_trace_has_every_execution_and_transfer(seed: int) -> None:
    run = lossy_run(seed)
    counts = Counter(entry["event"] for entry in log_entries(run))
    bars = [event for event in simulated_trace(run)["traceEvents"] if event["ph"] == "X"]
    categories = Counter(bar["cat"] for bar in bars)
    assert categories["stopped"] == counts["stop"] == len(stopped_executions(run))
    assert categories["transfer"] == counts["arrive"] + counts["cut"]
    assert len(bars) == counts["end"] + counts["stop"] + counts["arrive"] + counts["cut"]
    assert all(bar["dur"] >= 0 for bar in bars)


def test_some_of_these_runs_lose_executions() -> None:
    lost = [entry for seed in range(4) for entry in stopped_executions(lossy_run(seed))]
    assert lost
    assert all(entry["host"] == "h1" and entry["start"] <= entry["stop"] for entry in lost)
