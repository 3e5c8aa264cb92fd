"""Campaign files as users get them wrong, and what they can say about schedulers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace.commands.campaign import reasons, run_campaign_file, table
from headrace.experiment.campaign import check_campaign
from headrace.formats.campaign_toml import read_campaign
from headrace.model.errors import HeadraceError

SMALL = "[[application]]\ntasks = 6\nfiles = 2\n[[grid]]\n[[grid.cluster]]\nhosts = 2\n"


def refused(tmp_path: Path, text: str) -> str:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(HeadraceError) as found:
        check_campaign(read_campaign(tmp_path / "c.toml"))
    assert found.value.exit_code == 2
    return str(found.value)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ('schedulers = ["lheft"]\nevents = ["S1"]\n', "no scheduler of the campaign accepts events"),
        ('schedulers = ["lheft", "dheft"]\n[run]\nsubset = 5\n', "accepts subset"),
        ('schedulers = ["minmin"]\n[run]\ntime = 5\n', "accepts time"),
        ('schedulers = ["minmin"]\n[run]\nreduce = "random"\n', "subset is not set"),
        ('schedulers = ["minmin"]\n[run]\nreduce = "large"\nsubset = 5\n', "one of random, shared-file"),
        ('schedulers = ["minmin"]\n[run]\nerror = 1.5\n', "error is 1.5"),
        ('schedulers = ["minmin"]\nevents = ["once:5"]\n', "once without an interval"),
        ('schedulers = ["minmin"]\nevents = ["S1:inf"]\n', "interval is inf"),
        ('schedulers = ["minmin"]\nevents = ["S1:x"]\n', "S1:60"),
        ('schedulers = ["minmin"]\nestimates = ["good"]\n', "user, history"),
        ('schedulers = ["minmin"]\nfaults = ["kill=9@5"]\n', "only 2 are left"),
        ('schedulers = ["minmax"]\n', "'minmin'"),
    ],
)
def test_what_no_run_could_use_is_refused_before_any_run(tmp_path: Path, head: str, said: str) -> None:
    assert said in refused(tmp_path, head + SMALL)


@pytest.mark.parametrize(
    "part",
    [
        "[[application]]\ntasks = 1000000000\n",
        "[[application]]\ntasks = 1000000\nprivate = 1000\n",
        "[[application]]\ntasks = 1000000\narchitectures = 1000\n",
        '[[application]]\ngraph = "jacobi"\niterations = 1000000000\n',
        '[[application]]\ngraph = "fft"\npieces = 1048576\npoints = 536870912\n',
        '[[application]]\ngraph = "matmul"\nblocks = 900\n',
    ],
)
def test_absurd_sizes_are_refused_at_once(tmp_path: Path, part: str) -> None:
    assert "more than" in refused(tmp_path, f'schedulers = ["minmin"]\n{part}[[grid]]\n')


@pytest.mark.parametrize(
    "part",
    [
        "[[grid]]\n[[grid.cluster]]\nhosts = 1000000\n",
        "[[grid]]\nuntil = 1e12\n[[grid.cluster]]\nhosts = 2\nload = { walk = [0.3, 600] }\n",
        '[[grid]]\nuntil = 1e9\nup = 1\ndown = "1 s"\n[[grid.cluster]]\nhosts = 5\n',
    ],
)
def test_absurd_grids_are_refused_at_once(tmp_path: Path, part: str) -> None:
    assert "more than" in refused(tmp_path, f'schedulers = ["minmin"]\n[[application]]\ntasks = 5\n{part}')


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    return tmp_path


def test_time_goes_to_those_that_search(home: Path) -> None:
    head = 'schedulers = ["best", "lheft", "minmin"]\nevents = ["once"]\n[run]\ntime = 0.2\nsubset = 4\n'
    (home / "c.toml").write_text(head + SMALL)
    _, done = run_campaign_file(home / "c.toml", 1, None, lambda text: None)
    assert [one.outcome.error for one in done] == ["", "", ""]


OWN = """
from headrace.planners.list.{module} import {name}
class Mine({name}):
    name = "mine"
"""


def test_a_changed_scheduler_of_ones_own_runs_again(home: Path) -> None:
    (home / "c.toml").write_text('schedulers = ["mine.py:Mine"]\n' + SMALL)
    kept = []
    for module, name in (("heft", "Heft"), ("heft", "Heft"), ("single_host", "SingleHost")):
        (home / "mine.py").write_text(OWN.format(module=module, name=name))
        _, done = run_campaign_file(home / "c.toml", 1, None, lambda text: None)
        kept.append((done[0].kept, done[0].outcome.makespan))
    assert [known for known, _ in kept] == [False, True, False]
    assert kept[0][1] == kept[1][1] != kept[2][1]


def test_why_runs_did_not_end(home: Path) -> None:
    (home / "c.toml").write_text('schedulers = ["minmin"]\nfaults = ["kill=2@5", ""]\nseeds = 2\n' + SMALL)
    said: list[str] = []
    _, done = run_campaign_file(home / "c.toml", 1, home / "p.svg", said.append)
    assert said[0] == "4 runs, 4 to do"
    assert [row[4] for row in table(done)[1]] == ["0 of 2", "2"]
    (line,) = reasons(done)
    assert line.startswith("2 of 4 runs: ")
    assert "nothing more can happen" in line
    assert (home / "p.svg").exists()


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_done(home: Path) -> None:
    sweep = "[[application]]\ntasks = 40\n[[grid]]\n[[grid.cluster]]\nhosts = 2\n"
    (home / "c.toml").write_text('schedulers = ["minmin"]\nseeds = 3000\n' + sweep)
    command = [sys.executable, "-m", "headrace.cli", "campaign", "c.toml", "--workers", "2"]
    with (home / "err").open("w+") as err:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err, env=dict(os.environ))
        try:
            until = time.monotonic() + 90
            while " of 3000, about" not in (home / "err").read_text() and time.monotonic() < until:
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 130
        finally:
            process.kill()
            process.wait()
        text = (home / "err").read_text()
    assert text.endswith("interrupted\n")
    assert "finished runs are kept" in text
    assert "Traceback" not in text
    campaign = (home / "c.toml").read_text().replace("seeds = 3000", "seeds = 8")
    (home / "c.toml").write_text(campaign)
    _, done = run_campaign_file(home / "c.toml", 1, None, lambda text: None)
    assert any(one.kept for one in done)
