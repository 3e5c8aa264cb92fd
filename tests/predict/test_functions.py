"""Digests of functions: equal for the same code, and exactly equal for the same parameters."""

from __future__ import annotations

from functools import partial

from headrace.model.program import Command, Program
from headrace.predict.functions import FunctionDigest, function_digests


def digest(body: object, value: object = 1) -> FunctionDigest:
    program = Program()
    program.task(body, inputs=[program.input("x", value=value)], outputs=["y"], kind="k", name="t")
    return function_digests(program)["k"]


def test_the_code_counts_not_the_name():
    assert digest(lambda x: x + 1) == digest(lambda x: x + 1)
    assert digest(lambda x: x + 1).code != digest(lambda x: x + 2).code
    assert digest(lambda x: x + 1).code != digest(lambda x: x - 1).code


def test_parameters_change_the_exact_digest_alone():
    for one, other in (
        (digest(partial(pow, 2)), digest(partial(pow, 3))),
        (digest(abs, 1), digest(abs, 2)),
        (digest(Command(("run", "-n", "1"))), digest(Command(("run", "-n", "2")))),
    ):
        assert one.code == other.code
        assert one.exact != other.exact


def test_large_or_odd_values_are_not_read():
    class Odd:
        def __repr__(self) -> str:
            raise AssertionError

    assert digest(abs, Odd()) == digest(abs, Odd())
    assert digest(abs, "x" * 20_000) == digest(abs, "y" * 20_000)


def test_inner_functions_count():
    def outer(n: int) -> object:
        return lambda x: (lambda y: y + 1)(x)

    def other(n: int) -> object:
        return lambda x: (lambda y: y + 2)(x)

    assert digest(outer(1)).code != digest(other(1)).code
