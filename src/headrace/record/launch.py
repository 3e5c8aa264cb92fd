"""How a run was started: stored with it, so that it can be resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace.model.errors import BadFile, HeadraceError, UsageError
from headrace.model.program import Program
from headrace.record.identity import program_digest
from headrace.record.task_code import changed_tasks, code_digests
from headrace.runtime.file_trees import identity_of

VERSION = 2


@dataclass(frozen=True)
class Emulation:
    """How the tasks of a program were emulated."""

    time_scale: float = 1.0
    size_scale: float | None = None
    burn: bool = False


@dataclass(frozen=True)
class ProgramSource:
    """Where a program comes from."""

    spec: str
    """A file, or `file.py:name`."""
    emulation: Emulation | None = None
    commands: bool = False
    """Whether the commands of a WfFormat file are executed."""

    @property
    def file(self) -> Path:
        path, _, _ = self.spec.partition(":") if ".py:" in self.spec else (self.spec, "", "")
        return Path(path)


@dataclass(frozen=True)
class Launch:
    """What a run was started with.

    >>> launch = Launch(ProgramSource("/x/p.py:program"), "ab", "cd", settings={"on": "local"})
    >>> Launch.parse(launch.text()) == launch
    True
    """

    source: ProgramSource | None
    """None: the program was built by the caller, who must give it again."""
    source_digest: str
    """Checksum of the program's file; "" without one."""
    program_digest: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Checksum of each input file."""
    folder: str = "."
    """The working directory: relative paths start there."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Options of the run, as JSON values."""
    code: Mapping[str, str] = field(default_factory=dict)
    """Digests of what tasks execute; see `headrace.record.task_code`."""

    @classmethod
    def of(
        cls,
        program: Program,
        source: ProgramSource | None,
        settings: Mapping[str, Any],
        base: str | Path = ".",
    ) -> Launch:
        """Of a program that is about to run: reads its file and input files that are not too large."""
        if source is not None:
            spec = source.spec.replace(str(source.file), str(source.file.absolute()), 1)
            source = replace(source, spec=spec)
        return cls(
            source,
            "" if source is None else _checksum(source.file),
            program_digest(program.graph),
            {path: _checksum(Path(base) / path) for path in _input_paths(program)},
            str(Path(base).absolute()),
            dict(settings),
            {} if source is None else code_digests(program),
        )

    def text(self) -> str:
        return json.dumps({"version": VERSION, **asdict(self)}, allow_nan=False)

    @classmethod
    def parse(cls, text: str) -> Launch:
        """Of a record, which may be damaged or of an older version."""
        if not text:
            raise UsageError(
                "this run cannot be resumed: an older Headrace has recorded it", hint="run the program again"
            )
        try:
            stored = json.loads(text)
            if stored.pop("version") != VERSION:
                raise UsageError(
                    "this run cannot be resumed: another version of Headrace has recorded it",
                    hint="run the program again, or use that version",
                )
            given = stored.pop("source")
            source = None
            if given is not None:
                emulation = given["emulation"]
                source = ProgramSource(
                    str(given["spec"]),
                    None if emulation is None else Emulation(**emulation),
                    given.get("commands") is True,
                )
            return cls(source=source, **stored)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BadFile(f"the record does not say how the run was started: {error}") from None

    def load(self) -> Program:
        """The program, read from its file again."""
        if self.source is None and "experiment" in self.settings:
            raise UsageError(
                "the run belongs to an experiment",
                hint=f"headrace sweep {self.settings['experiment']} continues from what is kept",
            )
        if self.source is None:
            raise UsageError(
                "the program was built by a script",
                hint="call headrace.resume(run, program) from that script",
            )
        from headrace.formats.function_reference import with_functions
        from headrace.formats.loading import load_program

        program = load_program(self.source.spec, commands=self.source.commands)
        if self.source.emulation is not None:
            from headrace.runtime.emulate import emulate

            return emulate(program, **asdict(self.source.emulation))
        return with_functions(program)

    def changes(self, program: Program, used: tuple[str, ...]) -> list[str]:
        """What has changed since the run was started and matters, as texts.

        A change of code matters if it concerns one of the tasks whose outputs are `used`.
        """
        found = []
        if self.source is not None:
            file_changed = _checksum(self.source.file) != self.source_digest
            tasks = changed_tasks(program, self.code, used, file_changed)
            more = f" and {len(tasks) - 3} more" if len(tasks) > 3 else ""
            found += [f"the code of {', '.join(map(repr, tasks[:3]))}{more}"] if tasks else []
        found += [
            f"the input {path}"
            for path, checksum in self.inputs.items()
            if _checksum(Path(self.folder) / path) != checksum
        ]
        return found

    def has_structure(self, program: Program) -> bool:
        """Whether a program has the tasks and data of the one that was started."""
        return program_digest(program.graph) == self.program_digest


def _input_paths(program: Program) -> list[str]:
    return sorted({item.path for item in program.inputs() if item.path is not None and item.value is None})


def _checksum(path: Path) -> str:
    """Of a file, or what tells whether it has changed; a missing one has none, which the run itself reports."""
    try:
        return identity_of(path)
    except (OSError, HeadraceError):
        return ""
