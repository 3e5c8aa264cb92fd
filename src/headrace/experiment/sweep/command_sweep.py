"""Sweeps of a command-line program: the `[sweep]` table of an experiment file as a program of one task."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from headrace.formats.experiment_toml import ExperimentFile
from headrace.model.errors import BadFile, HeadraceError
from headrace.model.program import Command, Program
from headrace.record.code_parts import accepts

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def command_program(file: ExperimentFile, find: Callable[[str, str], Any]) -> Program:
    """A task for the command, and one for each function that makes a result of its outputs.

    An input whose path has a `{parameter}` becomes a file of each point: the merged program fills it in.
    """
    sweep = file.sweep
    assert sweep is not None
    where = f"{file.path}: [sweep]"
    program = Program(file.name)
    parameters = {s.parameter for s in file.substitutions if s.target == sweep.name}
    items = {*sweep.inputs, *sweep.outputs}
    for name in placeholders(" ".join(sweep.command)):
        if name not in items and name not in parameters:
            raise BadFile(
                f"{{{name}}} in the command is neither a file nor a parameter",
                where=where,
                hint=f"add it to inputs or outputs, or set it in [set.{sweep.name}]",
            )
    try:
        for name, path in sweep.inputs.items():
            program.input(name, path, size=None)
        command = Command(sweep.command, sweep.stdout)
        program.task(
            command, inputs=list(sweep.inputs), outputs=dict.fromkeys(sweep.outputs), name=sweep.name,
            kind=sweep.name, work=sweep.work,
        )  # fmt: skip
        for result, spec in sweep.results.items():
            function = find(spec, f"{where}: results.{result}")
            problem = accepts(function, len(sweep.outputs))
            if problem:
                raise BadFile(
                    f"{spec!r} {problem}", where=where, hint=f"it gets {len(sweep.outputs)} files, as paths"
                )
            program.task(
                function, inputs=list(sweep.outputs), outputs=[result], name=f"read {result}", work=0.01
            )
            program.output(result)
    except BadFile:
        raise
    except HeadraceError as error:
        raise BadFile(error.problem, where=where, hint=error.hint) from None
    return program


def placeholders(text: str) -> list[str]:
    """
    >>> placeholders("config-{seed}.txt")
    ['seed']
    """
    return _PLACEHOLDER.findall(text)
