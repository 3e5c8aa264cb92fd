"""Runs that are killed: a client process that ends at a chosen write to the journal, and what it left behind.

`python crashing.py HOME ADDRESS ACTION [WRITE before|after]`: run, or resume, the program of `prog.py` in the current
folder on the cluster at ADDRESS, and end by SIGKILL just before or after the WRITE-th transaction is committed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import headrace
from headrace.record import Record

PROGRAM = """
import os
import time

import numpy as np

import headrace as hr

WIDTH, DEPTH = 3, 4


def note(log, name):
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, f"{name}\\n".encode())
    os.close(file)


def make(log, name, *values):
    note(log, name)
    time.sleep(0.03)
    # Every other value is too large for a row of the database.
    return np.full(2000 if name.endswith("1") else 1, sum(float(v[0]) for v in values) + 1.0)


def end(log, *values):
    note(log, "end")
    return {"sum": sum(float(v[0]) for v in values)}


program = hr.Program("layers")
log = program.input("log", value=LOG)
for level in range(DEPTH):
    for i in range(WIDTH):
        name = f"t{level}.{i}"
        above = [f"x{level - 1}.{(i + k) % WIDTH}" for k in range(2)] if level else []
        program.task(
            make,
            name=name,
            inputs=[log, program.input(f"name {name}", value=name), *above],
            outputs=[f"x{level}.{i}"],
            work=0.03,
        )
program.task(end, name="end", inputs=[log, *(f"x{DEPTH - 1}.{i}" for i in range(WIDTH))], outputs=["answer"])
program.output("answer", "answer.json")
"""
ANSWER = '{\n  "sum": 45.0\n}\n'
TASKS = 13


@dataclass(frozen=True)
class Place:
    """A folder with a program that notes each execution, and a record."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Place:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "prog.py").write_text(f"LOG = {str(folder / 'log')!r}\n{PROGRAM}")
        return cls(folder)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def executed(self) -> list[str]:
        """Tasks in the order in which they were started."""
        log = self.folder / "log"
        return log.read_text().splitlines() if log.exists() else []

    def settled(self) -> list[str]:
        """The same, when nothing of a killed client runs any more."""
        before = [""]
        while before != (before := self.executed()):
            time.sleep(0.4)
        return before

    def committed(self) -> set[str]:
        """Tasks whose output is committed."""
        with Record.open(self.home) as record:
            if not record.runs():
                return set()
            items = {kept.item for kept in record.kept("last")}
        return {f"t{item[1:]}" if item.startswith("x") else "end" for item in items}

    def status(self) -> str:
        with Record.open(self.home) as record:
            return record.last().status

    def client(self, address: str, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(Path(__file__)), str(self.home), address, *words]
        environment = os.environ | {"PYTHONPATH": str(Path(headrace.__file__).parents[1])}
        return subprocess.Popen(command, cwd=self.folder, env=environment, stderr=subprocess.PIPE, text=True)

    def require_resumed(self, before: list[str], committed: set[str]) -> None:
        """After a resume: the answer is right, and nothing that was committed has run again."""
        again = Counter(self.executed()[len(before) :])
        assert set(again) & committed == set()
        assert max(again.values(), default=1) == 1
        assert set(again) | committed == {"end"} | {f"t{i}.{j}" for i in range(4) for j in range(3)}
        assert (self.folder / "answer.json").read_text() == ANSWER
        assert self.status() == "done"


def crash_at(write: int, after: bool) -> None:
    """End this process by SIGKILL at a transaction of the journal."""
    from headrace.record.database import Database

    plain = Database.writing
    count = 0

    @contextmanager
    def writing(self):  # type: ignore[no-untyped-def]
        nonlocal count
        count += 1
        with plain(self) as connection:
            yield connection
            if count == write and not after:
                os.kill(os.getpid(), signal.SIGKILL)
        if count == write:
            os.kill(os.getpid(), signal.SIGKILL)

    Database.writing = writing  # type: ignore[method-assign]


def main(home: str, address: str, action: str, write: str = "0", when: str = "before") -> None:
    import headrace as hr
    from headrace.formats.loading import load_program
    from headrace.record import journal
    from headrace.record.launch import ProgramSource

    journal.GROUP_SECONDS = 0.02  # more writes, and so more places to crash at
    if write != "0":
        crash_at(int(write), when == "after")
    if action == "run":
        program = load_program("prog.py:program")
        source = ProgramSource("prog.py:program")
        hr.run(program, address, "dask", record=home, source=source, keep="all", learn=False)
    else:
        hr.resume("last", record=home, on=address)


if __name__ == "__main__":
    main(*sys.argv[1:])
