"""After `headrace warmup` nothing is compiled any more, whatever command comes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.commands.warmup_workloads import write_inputs
from headrace.planners.registry import names

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests/formats/data/srasearch-chameleon-30a-001.json.gz"
PST = ROOT / "tests/formats/data/pst"
CONTENTIONS = ("none", "fifo", "fair")
RULED = (
    "heft",
    "cpop",
    "peft",
    "locality",
    "minmin",
    "sufferage",
    "xsufferage",
    "random-maxmin",
    "auto",
    "best",
)
FAULTS = "kill=1@30%,slow=1*0.5@10%+20%,join=1@50%,link=a@10%+5,cluster=b@60%+9"

RUN = """
import contextlib, io, json, shlex, sys
from headrace.cli import assemble
from headrace.arrays.compiling import LOG

compiled = {}
for command in json.load(sys.stdin):
    before = len(LOG.compiled)
    error = ""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            assemble(command.split()[0])(shlex.split(command), standalone_mode=False)
        except Exception as raised:
            error = repr(raised)
    compiled[command] = [*LOG.compiled[before:], *([error] if error else [])]
print(json.dumps(compiled))
"""


def documented_commands() -> list[str]:
    """The commands that the README shows, as they can be run here."""
    text = (ROOT / "README.md").read_text()
    shown = re.findall(r"^\$ headrace ((?:check|plan|simulate|run) .*)$", text, re.MULTILINE)
    assert len(shown) >= 6
    return [re.sub(r"\b(tests|examples)/", f"{ROOT}/\\1/", command) for command in shown]


def more_commands() -> list[str]:
    """All planners and online schedulers, under every kind of contention, and what else can be simulated."""
    small = [f"{contention}.toml" for contention in CONTENTIONS]
    time = {"best": " --time 0.3", "coschedule": " --time 0.3"}
    plans = [f"plan program.json --on {on} -s {name}{time.get(name, '')}" for on in small for name in names()]
    online = [
        f"simulate program.json --on {on} -s {name} --faults '{FAULTS}' --error 0.2 --replicate 2"
        for on in small
        for name in ("lheft", "dheft", "workqueue", "heft")
    ]
    ruled = [
        f"plan program.json --on {on} -s {name} --rules small.rules{time.get(name, '')}"
        for on in small
        for name in RULED
    ]
    ruled += [
        f"simulate program.json --on {on} -s {name} --rules small.rules --faults kill=b1@30% --duplicate"
        for on in (*small, "shared.toml")
        for name in ("heft", "lheft", "workqueue", "dheft", "sufferage")
    ]
    lab = ROOT / "examples/lab.toml"
    return [
        *plans,
        *online,
        *ruled,
        "plan program.json --on none.toml -s search --rules shapes.rules",
        "plan program.json --on fifo.toml -s auto --rules shapes.rules",
        "run program.json --emulate --time-scale 0.001 --workers 2 -s heft --rules shapes.rules",
        "simulate program.json --on shared.toml -s lheft --steal --duplicate --ahead 2",
        "simulate program.json --on fifo.toml -s heft --replan both --links out-of-order",
        "simulate program.json --on fifo.toml -s minmin --events S2 --interval 5 --subset 4 --reduce random",
        "simulate program.json --on fifo.toml -s dheft --planning 1 --estimates history",
        f"simulate {PST}/sweep.pst --on {PST}/grid.pst -s xsufferage --events S2 --estimates forecast --seed 3",
        f"simulate {PST}/sweep.pst --on {PST}/grid.pst -s heft --events S1 --horizon tuned",
        f"simulate {PROGRAM} --on {lab} -s heft --error 0.2 --runs 20",
        f"compare {PROGRAM} --on {lab} --schedulers heft,minmin,auto",
        f"plan {ROOT}/examples/coschedule/production.csv --on {ROOT}/examples/coschedule/star.toml"
        " -s coschedule --time 1",
        f"plan {ROOT}/examples/mosaic.py:program --on local",
        f"deploy {ROOT}/examples/lpsched/microscope.ini --on {ROOT}/examples/lpsched/maryland.ini --simulate",
        "run program.json --emulate --time-scale 0.001 --workers 2 -s lheft",
        "run program.json --emulate --time-scale 0.001 --workers 2 -s heft",
    ]


@pytest.fixture(scope="module")
def warm(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """A folder with inputs and the environment of a warm cache."""
    folder = tmp_path_factory.mktemp("warm")
    write_inputs(folder)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    own = {"HEADRACE_CACHE_DIR": str(folder / "cache"), "HEADRACE_HOME": str(folder / "record")}
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return folder, plain | own | {"PYTHONPATH": os.pathsep.join(paths)}


def headrace(warm: tuple[Path, dict[str, str]], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headrace.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=warm[0], env=warm[1], check=False)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nothing_is_compiled_after_a_warmup(warm):
    first = headrace(warm, "warmup", "--json")
    assert first.returncode == 0, first.stderr
    made = json.loads(first.stdout)
    assert not made["was_warm"]
    assert made["functions"] > 100
    again = json.loads(headrace(warm, "warmup", "--json").stdout)
    assert again["was_warm"]
    assert again["seconds"] < 1

    commands = [*documented_commands(), *more_commands()]
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        cwd=warm[0],
        env=warm[1],
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    compiled = json.loads(done.stdout)
    assert {command: names for command, names in compiled.items() if names} == {}
    assert "Compiling" not in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_damaged_cache_is_not_called_warm(warm):
    assert headrace(warm, "warmup").returncode == 0
    folder = next(
        path for path in (warm[0] / "cache").iterdir() if ".walk" in path.name or path.name.startswith("walk")
    )
    for entry in folder.iterdir():
        entry.unlink()
    again = json.loads(headrace(warm, "warmup", "--json").stdout)
    assert not again["was_warm"]
    assert 1 <= again["functions"] <= 10
