"""The constraint paper's studies, on a few of their programs."""

from __future__ import annotations

import numpy as np

from headrace.experiment.image_processing import lesson
from headrace.reproductions import Ask
from headrace.reproductions.constraints import LESSONS, study
from reproductions.test_figures_online import sound


def test_rules_of_the_user_are_kept():
    made = sound(study(Ask(), [100, 101, 102]))  # not among the 47
    kept = [claim for claim in made.claims if claim.rule == "in all programs"]
    assert len(kept) == 3
    assert [claim.measured for claim in kept] == ["in 3 of 3 programs"] * 3


def test_programs_have_the_size_of_the_papers():
    programs = [lesson(seed) for seed in range(LESSONS)]
    tasks = [len(program.tasks) for program in programs]
    dependencies = [sum(len(task.inputs) for task in program.tasks.values()) for program in programs]
    assert 17 <= np.mean(tasks) <= 19
    assert 17 <= np.mean(dependencies) <= 19
