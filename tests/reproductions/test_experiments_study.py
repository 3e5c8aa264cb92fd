"""The second study of the constraint paper, in small."""

from __future__ import annotations

import pytest

from headrace.reproductions import Ask
from headrace.reproductions.experiments import Result, claims, merged_lesson, study


@pytest.mark.parametrize("seed", range(12))
def test_versions_multiply_only_what_depends_on_them(seed: int) -> None:
    merged = merged_lesson(seed, 0.01, 0.01)
    program = merged.variants[0].program
    assert merged.tasks_alone == 16 * len(program.tasks)
    chosen = {axis.target for axis in merged.experiment.axes}
    depends: dict[str, set[str]] = {}
    for t in program.graph.order.tolist():
        task = list(program.tasks.values())[t]
        before = [depends[program.producer[item]] for item in task.inputs]
        depends[task.name] = set().union({task.name} & chosen, *before)
    assert len(merged.identities) == sum(4 ** len(of) for of in depends.values())


def test_the_claims_are_judged() -> None:
    good = Result("a", 10, 160, 40, 40, 40.0, 10.0, 6, 3.0, 5)
    twice = Result("b", 10, 160, 40, 41, 40.0, 30.0, 6, 3.0, 5)
    assert [claim.agrees for claim in claims([good])] == [True, True, True]
    assert [claim.agrees for claim in claims([good, twice])] == [False, False, False]


@pytest.mark.slow
def test_two_programs_on_real_workers() -> None:
    made = study(Ask(), [4, 5], 0.005)
    assert len(made.rows) == 2
    assert made.claims[0].agrees
