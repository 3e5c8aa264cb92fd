"""Digests tell programs apart by what they are, not by what they are estimated to take."""

from __future__ import annotations

from headrace.model.program import Program
from headrace.record.identity import LifeSign, program_digest


def program(*, size: float = 1.0, work: float = 1.0, kind: str = "k", second: str = "b") -> Program:
    made = Program()
    image = made.input("image", size=size)
    first = made.task(None, inputs=[image], outputs=["x"], name="a", kind=kind, work=work)
    made.task(None, inputs=[first], outputs=["y"], name=second, kind="k")
    return made


def test_estimates_do_not_change_the_digest_but_structure_does():
    digest = program_digest(program().graph)
    assert program_digest(program(size=5.0, work=9.0).graph) == digest
    assert program_digest(program(kind="other").graph) != digest
    assert program_digest(program(second="c").graph) != digest
    rewired = Program()
    image = rewired.input("image")
    rewired.task(None, inputs=[image], outputs=["x"], name="a", kind="k")
    rewired.task(None, inputs=[image], outputs=["y"], name="b", kind="k")
    assert program_digest(rewired.graph) != digest


def test_a_life_sign_is_seen_while_it_is_held(tmp_path):
    path = tmp_path / "run"
    assert not LifeSign.seen(path)
    sign = LifeSign(path)
    assert LifeSign.seen(path)
    sign.end()
    assert not LifeSign.seen(path)
    assert not path.exists()
    path.touch()
    assert not LifeSign.seen(path)
