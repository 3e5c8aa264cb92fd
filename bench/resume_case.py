"""A random program in a folder of its own that notes every execution, with its right results and its record."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headrace.record import Record

ROOT = Path(__file__).resolve().parents[1]
_MODULUS = 1_000_003
_SETTLED_SECONDS = 0.4

PROGRAM = '''
import json
import os
import time
from pathlib import Path

import numpy as np

import headrace as hr

HERE = Path(__file__).parent


def make(row, log, *values):
    """Note the execution, wait, and return numbers that depend on everything before."""
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, f"{row['name']}\\n".encode())
    os.close(file)
    time.sleep(row["seconds"])
    number = (31 * sum(int(v[0]) for v in values) + row["number"]) % 1_000_003
    # Large values are kept in files, small ones in rows of the record.
    made = tuple(np.full(row["length"], number + k) for k in range(len(row["outputs"])))
    return made if len(made) > 1 else made[0]


program = hr.Program("case")
log = program.input("log", value=str(HERE / "log"))
case = json.loads((HERE / "case.json").read_text())
for row in case["tasks"]:
    given = [program.input(f"row {row['name']}", value=row), log, *row["reads"]]
    program.task(
        make, name=row["name"], inputs=given, outputs=row["outputs"], after=row["after"], work=row["seconds"]
    )
for item, path in case["results"].items():
    program.output(item, path)
'''


@dataclass(frozen=True)
class Case:
    """The folder, and what is in it."""

    folder: Path
    tasks: list[dict[str, Any]]
    expected: dict[str, tuple[int, int]]
    """For each result file, the length and the number of its array."""

    @classmethod
    def make(cls, folder: Path, seed: int) -> Case:
        """A program of several levels; results are in the middle and at the end."""
        rng = random.Random(seed)
        tasks: list[dict[str, Any]] = []
        made: list[str] = []
        for level in range(rng.randint(3, 4)):
            row = [_task(rng, f"t{level}.{k}", made, tasks) for k in range(rng.randint(2, 4))]
            tasks += row
            made = [*made[-3:], *(output for task in row for output in task["outputs"])]
        last = _task(rng, "last", made[-3:], tasks)
        tasks.append(last)
        wanted = {last["outputs"][0]: "last.npy", rng.choice(tasks[:-1])["outputs"][0]: "middle.npy"}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "case.json").write_text(json.dumps({"tasks": tasks, "results": wanted}))
        (folder / "prog.py").write_text(PROGRAM)
        values = _values(tasks)
        return cls(folder, tasks, {path: values[item] for item, path in wanted.items()})

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def start(self, point: str, *arguments: str) -> subprocess.Popen[str]:
        """A `headrace` process in the folder, in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "bench.resume_client", point, *arguments],
            cwd=self.folder,
            env=os.environ
            | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "HEADRACE_HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def executed(self) -> list[str]:
        """Tasks in the order in which they were started."""
        log = self.folder / "log"
        return log.read_text().splitlines() if log.exists() else []

    def settled(self) -> list[str]:
        """The same, when nothing of a killed client runs any more."""
        before: list[str] | None = None
        while before != (now := self.executed()):
            before = now
            time.sleep(_SETTLED_SECONDS)
        return now

    def has_run(self) -> bool:
        with Record.open(self.home) as record:
            return bool(record.runs())

    def status(self) -> str:
        with Record.open(self.home) as record:
            return record.last().status

    def committed(self) -> set[str]:
        """Tasks of which every output is committed."""
        with Record.open(self.home) as record:
            items = {kept.item for kept in record.kept("last")} if record.runs() else set()
        return {task["name"] for task in self.tasks if items.issuperset(task["outputs"])}

    def wrong(self) -> list[str]:
        """Result files that are missing or not right."""
        return [path for path, value in self.expected.items() if _array(self.folder / path) != value]


def _task(rng: random.Random, name: str, made: list[str], before: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "number": rng.randrange(1000),
        "seconds": rng.choice([0.0, 0.02, 0.05, 0.1]),
        "length": rng.choice([1, 3000]),
        "reads": rng.sample(made, min(len(made), rng.randint(1, 3))),
        "outputs": [f"x{name}", f"y{name}"] if rng.random() < 0.2 else [f"x{name}"],
        "after": [rng.choice(before)["name"]] if before and rng.random() < 0.15 else [],
    }


def _values(tasks: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Length and number of each item, computed without Headrace."""
    values: dict[str, tuple[int, int]] = {}
    for task in tasks:
        number = (31 * sum(values[item][1] for item in task["reads"]) + task["number"]) % _MODULUS
        values.update({item: (task["length"], number + k) for k, item in enumerate(task["outputs"])})
    return values


def _array(path: Path) -> tuple[int, int] | None:
    """Length and number of a file's array, if all its numbers are the same."""
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return (len(array), int(array[0])) if len(array) and (array == array[0]).all() else None
