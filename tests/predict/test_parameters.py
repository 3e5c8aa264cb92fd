"""Numbers that tasks receive: found by name wherever they are given, and compared by digest."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from headrace.model.program import Command, Program
from headrace.predict.parameters import TaskParameters, task_parameters


def of(body: object, value: object = "text") -> TaskParameters:
    program = Program()
    program.task(body, inputs=[program.input("x", value=value)], outputs=["y"], name="t")
    return task_parameters(program)["t"]


def smooth(width: float, x: object = None, *, rounds: int = 3) -> None:
    pass


def sharpen(x: object, width: float = 1, rounds: int = 3) -> None:
    pass


def captured(width: float) -> object:
    return lambda x: width


@pytest.mark.parametrize(
    ("body", "numbers"),
    [
        (partial(smooth, 5), {"width": 5.0, "rounds": 3.0}),
        (partial(sharpen, width=5, rounds=7), {"width": 5.0, "rounds": 7.0}),
        (partial(smooth, np.float32(0.5)), {"width": 0.5, "rounds": 3.0}),
        (captured(4), {"width": 4.0}),
        (partial(max, 4), {"argument 0": 4.0}),
        (partial(smooth, True), {"rounds": 3.0}),
        (partial(smooth, np.ones(3)), {"rounds": 3.0}),
        (partial(smooth, float("nan")), {"rounds": 3.0}),
        (Command(("blast", "--limit=40", "7", "file.txt")), {"argument 0": 40.0, "argument 1": 7.0}),
    ],
)  # fmt: skip
def test_numbers_are_found(body, numbers):
    assert of(body).numbers == numbers


def test_scalar_inputs_count_and_results_of_tasks_do_not():
    assert of(abs, 2.5).numbers == {"input 0": 2.5}
    program = Program()
    made = program.task(lambda: 1, outputs=["a"], name="first")
    program.task(abs, inputs=[made], outputs=["b"], name="second")
    assert task_parameters(program)["second"].numbers == {}


def test_the_digest_tells_whether_anything_has_changed():
    assert of(partial(smooth, 5)).digest == of(partial(smooth, 5)).digest
    assert of(partial(smooth, 5)).digest != of(partial(smooth, 6)).digest
    assert of(partial(smooth, "a")).digest != of(partial(smooth, "b")).digest
    assert of(abs, 1).digest != of(abs, 2).digest


def test_only_some_numbers_are_kept():
    assert len(of(partial(max, *range(100))).numbers) == 8
