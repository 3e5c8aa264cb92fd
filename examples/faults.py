"""Programs in which something goes wrong, to see what a run does about it.

headrace run examples/faults.py:lens --workers 2
"""

from __future__ import annotations

import os
from pathlib import Path

from headrace import Program


def grind(number: int) -> str:
    return f"lens {number} is ground\n"


def polish(lens: str) -> str:
    raise ValueError("the lens is dirty")


def measure(mark: str) -> float:
    """Fails at the first attempt, and leaves a file that says so."""
    tried = Path(mark).exists()
    print("second attempt" if tried else "first attempt")
    if not tried:
        Path(mark).touch()
        raise OSError("no answer")
    return 1.25


def crash(number: int) -> None:
    os._exit(7)


def lens() -> Program:
    """The second of its tasks fails."""
    program = Program("lens")
    ground = program.task(grind, inputs=[program.input("number", value=1)], outputs=["ground"], work=0.01)
    program.output(ground, "ground.txt")
    program.output(program.task(polish, inputs=[ground], outputs=["polished"], work=0.01, name="polish"))
    return program


def flaky() -> Program:
    """Its task succeeds at the second attempt."""
    program = Program("flaky")
    mark = program.input("mark", value=str(Path("tried").resolve()))
    program.output(program.task(measure, inputs=[mark], outputs=["length"], work=0.01, name="measure"))
    return program


def killer() -> Program:
    """Its task kills every worker that it runs on."""
    program = Program("killer")
    number = program.input("number", value=1)
    program.output(program.task(crash, inputs=[number], outputs=["nothing"], work=0.01, name="culprit"))
    return program
