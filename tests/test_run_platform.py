"""What a run is planned with: the engine's overheads of earlier runs on the same platform."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from headrace.model.platform import Platform
from headrace.model.program import Program
from headrace.predict.learning import Learned
from headrace.predict.overheads import Overheads
from headrace.record import Record
from headrace.record.probes import save_overheads
from headrace.run_platform import UNKNOWN, RunPlatform, given_platform, with_overheads

LAB = Platform.pairwise([4.0, 1.0], bandwidth=1e6)


def planned(record: Record | None) -> tuple[RunPlatform, Learned]:
    program = Program("p")
    for k in range(2):
        program.task(None, kind="a", name=f"t{k}", work=2.0)
    learned = Learned(program.graph, LAB)
    return with_overheads(given_platform(LAB), learned, record), learned


def test_without_earlier_runs_nothing_is_added(tmp_path: Path) -> None:
    with Record.open(tmp_path) as record:
        for known in (None, record):
            found, _ = planned(known)
            assert found.platform is LAB
            assert found.sources.engine == UNKNOWN


def test_tasks_take_longer_by_what_the_engine_took(tmp_path: Path) -> None:
    with Record.open(tmp_path) as record:
        _, learned = planned(None)
        with record.begin("p", learned.graph, LAB, "heft") as entry:
            save_overheads(record, entry.id, Overheads(0.25, 0.004))
        found, _ = planned(record)
    assert found.sources.engine == "250 ms a task and 4 ms a transfer in earlier runs"
    np.testing.assert_allclose(2.0 / found.platform.rates(learned.graph)[0], [0.75, 2.25])
    assert found.sources.links == f"as described in {LAB.name}"


def test_a_note_says_when_history_overrides_the_users_figures() -> None:
    from headrace.predict.learning import Observed, learn
    from headrace.run_platform import Sources, described_sources

    def text(work: float) -> str:
        program = Program("p")
        program.task(None, work=work, kind="fit", name="a")
        lab = Platform.pairwise([1.0], bandwidth=1e6)
        learned = learn(program.graph, lab, [Observed("fit", 0, "h0", 3.0, 0.0)] * 3)
        return described_sources(Sources("", ""), learned).run_times

    assert text(3.1) == "1 of 1 task from earlier executions"
    assert text(1.0) == "1 of 1 task from earlier executions"  # the user gave no figure
    assert text(30.0) == (
        "1 of 1 task from earlier executions; history overrides the program's figures: fit 0.1 times"
    )
