"""Campaigns: every combination once, kept, resumed, summarised and drawn."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.commands.campaign import run_campaign_file, table, to_json
from headrace.experiment import campaign as module
from headrace.experiment.campaign import Combination, Done, KeptRuns, Outcome, combine, run_campaign
from headrace.experiment.campaign_parts import entry_digest, make_grid, make_program
from headrace.experiment.campaign_summary import pictures, summaries
from headrace.formats.campaign_toml import CampaignFile, Entry, read_campaign
from headrace.formats.pst_grid import write_grid
from headrace.formats.pst_work import write_work
from headrace.model.errors import HeadraceError, UsageError
from headrace.simulator.events.simulate import simulate_program

SMALL = """
name = "small"
schedulers = ["minmin", "workqueue"]
seeds = 2
[[application]]
name = "a"
tasks = 8
files = 2
shared = ["10 kB", "50 kB"]
[[grid]]
name = "g"
[[grid.cluster]]
hosts = 2
[[grid.cluster]]
hosts = 1
availability = 0.5
"""


@pytest.fixture
def small(tmp_path: Path) -> CampaignFile:
    (tmp_path / "small.toml").write_text(SMALL)
    return read_campaign(tmp_path / "small.toml")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Schedulers of the runs that are really simulated."""
    calls: list[str] = []
    plain = module.simulate_program

    def counting(program: object, grid: object, scheduler: str, *rest: object, **more: object) -> object:
        calls.append(scheduler)
        return plain(program, grid, scheduler, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "simulate_program", counting)
    return calls


def test_every_combination_once_and_never_again(
    small: CampaignFile, counted: list[str], tmp_path: Path
) -> None:
    with KeptRuns(tmp_path) as kept:
        first = run_campaign(small, kept, workers=1)
        assert len(counted) == len(first) == 8
        again = run_campaign(small, kept, workers=1)
    assert len(counted) == 8
    assert [d.outcome for d in again] == [d.outcome for d in first]
    assert all(d.kept for d in again)
    assert not any(d.kept for d in first)
    assert [d.run for d in first] == list(combine(small))


def test_a_result_is_that_of_the_simulator(small: CampaignFile, tmp_path: Path) -> None:
    with KeptRuns(tmp_path) as kept:
        done = run_campaign(small, kept, workers=1)
    one = done[5].run
    program, grid = make_program(one.application, one.seed), make_grid(one.grid, one.seed)
    run = simulate_program(program, grid, one.scheduler, seed=one.seed)
    assert done[5].outcome.makespan == run.makespan
    assert done[5].outcome.bytes_moved == run.bytes_moved


def test_it_goes_on_where_it_stopped(
    small: CampaignFile, counted: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = module.simulate_job
    left = iter(range(3))

    def interrupted(job: object) -> Outcome:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return plain(job)  # type: ignore[arg-type]

    with KeptRuns(tmp_path) as kept:
        monkeypatch.setattr(module, "simulate_job", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_campaign(small, kept, workers=1)
        monkeypatch.setattr(module, "simulate_job", plain)
        done = run_campaign(small, kept, workers=1)
    assert sum(d.kept for d in done) == 3
    assert len(counted) == 8


@pytest.mark.slow
def test_processes_give_the_same(small: CampaignFile, tmp_path: Path) -> None:
    with KeptRuns(tmp_path / "one") as kept:
        here = run_campaign(small, kept, workers=1)
    said: list[str] = []
    with KeptRuns(tmp_path / "two") as kept:
        there = run_campaign(small, kept, workers=2, tell=said.append)
    assert [d.outcome._replace(deciding=0) for d in here] == [d.outcome._replace(deciding=0) for d in there]
    assert said[0] == "8 runs, 8 to do"
    assert said[-1].startswith("8 of 8")


def test_online_schedulers_run_once_for_all_planning_events(
    small: CampaignFile, counted: list[str], tmp_path: Path
) -> None:
    both = replace(small, events=("S1:50", "once"), applications=small.applications[:1], seeds=(0,))
    with KeptRuns(tmp_path) as kept:
        done = run_campaign(both, kept, workers=1)
    assert sorted(counted) == ["minmin", "minmin", "workqueue"]
    assert len(done) == 4


def test_changing_anything_that_matters_runs_anew(
    small: CampaignFile, counted: list[str], tmp_path: Path
) -> None:
    one = replace(small, applications=small.applications[:1], seeds=(0,), schedulers=("minmin",))
    renamed = replace(one, name="other", grids=(replace(one.grids[0], name="called otherwise"),))
    with KeptRuns(tmp_path) as kept:
        for variant in (one, renamed):
            run_campaign(variant, kept, workers=1)
        assert len(counted) == 1, "names do not matter"
        for variant in (
            replace(one, seeds=(5,)),
            replace(one, estimates=("perfect",)),
            replace(one, run={"planning_fixed": 3.0}),
            replace(one, faults=("kill=1@50%",)),
            replace(one, grids=(replace(one.grids[0], clusters=({"hosts": 3},)),)),
        ):
            before = len(counted)
            run_campaign(variant, kept, workers=1)
            assert len(counted) == before + 1


def test_files_count_by_what_they_hold(small: CampaignFile, tmp_path: Path) -> None:
    program, grid = make_program(small.applications[0], 1), make_grid(small.grids[0], 1)
    assert not isinstance(grid, type(None))
    write_work(program, tmp_path / "w.pst")
    write_grid(grid, tmp_path / "g.pst")  # type: ignore[arg-type]
    app, place = Entry("w", "file", file=tmp_path / "w.pst"), Entry("g", "file", file=tmp_path / "g.pst")
    before = entry_digest(app, "application"), entry_digest(place, "grid")
    assert before == (entry_digest(app, "application"), entry_digest(place, "grid"))
    (tmp_path / "c1h0").write_text("1\n40\n")
    (tmp_path / "w.pst").write_text((tmp_path / "w.pst").read_text().replace("<1 : 9", "<1 : 8"))
    after = entry_digest(app, "application"), entry_digest(place, "grid")
    assert before[0] != after[0]
    assert before[1] != after[1], "a behaviour file counts too"


def test_a_run_that_cannot_end_is_told_and_not_kept(
    small: CampaignFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = replace(small, seeds=(0,), faults=("cluster=c0@1,cluster=c1@1",))
    with KeptRuns(tmp_path) as kept:
        done = run_campaign(one, kept, workers=1)
        assert all("nothing more can happen" in d.outcome.error for d in done)
        assert not any(d.kept for d in run_campaign(one, kept, workers=1))
    found = summaries(done)
    assert found[0].failed == found[0].runs == 1
    assert found[0].makespan is None
    headers, rows = table(done)
    assert rows[0][headers.index("makespan")] == "no run finished"
    text = json.dumps(to_json(one, done), allow_nan=False)
    assert "nothing more can happen" in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schedulers": ("minmax",)}, "minmax"),
        ({"events": ("S9",)}, "S9"),
        ({"events": ("S1:often",)}, "often"),
        ({"estimates": ("exact",)}, "exact"),
        ({"faults": ("", "kill=nobody@3")}, "nobody"),
        ({"applications": (Entry("a", "sweep", {"pattern": "pairwise", "files": 1}),)}, "pairs of 1"),
        ({"applications": (Entry("f", "fft", {"points": 100}),)}, "points is 100"),
        ({"applications": (Entry("f", "file", file=Path("nowhere.pst")),)}, "nowhere.pst"),
        ({"grids": (Entry("g", "grid", {}, ({"hosts": 1, "availability": 7.0},)),)}, "availability is 7"),
    ],
)
def test_mistakes_are_found_before_anything_runs(
    change: dict[str, object], words: str, small: CampaignFile, counted: list[str], tmp_path: Path
) -> None:
    with KeptRuns(tmp_path) as kept, pytest.raises(HeadraceError, match=words):
        run_campaign(replace(small, **change), kept, workers=1)  # type: ignore[arg-type]
    assert not counted


def made_up(makespans: dict[tuple[str, str, int], float], small: CampaignFile) -> list[Done]:
    entries = {entry.name: entry for entry in small.applications}
    return [
        Done(Combination(entries[app], small.grids[0], s, "S2", "user", "", seed), Outcome(value), False)
        for (app, s, seed), value in makespans.items()
    ]


def test_summaries_compare_schedulers_of_the_same_seed(small: CampaignFile) -> None:
    a = small.applications[0].name
    done = made_up({(a, "x", 0): 10, (a, "x", 1): 30, (a, "y", 0): 20, (a, "y", 1): 15}, small)
    x, y = summaries(done)
    assert (x.makespan, y.makespan) == (20.0, 17.5)
    assert x.relative == pytest.approx((10 / 10 + 30 / 15) / 2)
    assert y.relative == pytest.approx((20 / 10 + 15 / 15) / 2)
    assert x.deviation == pytest.approx(math.sqrt(200))


def test_the_picture_has_the_number_that_varies_as_its_axis(small: CampaignFile) -> None:
    a, b = (entry.name for entry in small.applications)
    found = summaries(made_up({(a, "x", 0): 10, (b, "x", 0): 30, (b, "y", 0): 20}, small))
    (drawn,) = pictures(small.applications[::-1], found)
    assert (drawn.x_label, list(drawn.x), drawn.shape) == ("shared (kB)", [10.0, 50.0], "lines")
    assert drawn.curves == {"x": [10, 30], "y": [None, 20]}
    others = [small.applications[0], replace(small.applications[1], name="b", varied={})]
    renamed = summaries(made_up({(a, "x", 0): 10}, small))
    (bars,) = pictures(others, renamed)
    assert (bars.shape, list(bars.x)) == ("bars", [a, "b"])


def test_the_command_reads_runs_and_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    (tmp_path / "small.toml").write_text(SMALL)
    read, done = run_campaign_file(tmp_path / "small.toml", 1, tmp_path / "p.svg", lambda text: None)
    assert (tmp_path / "p.svg").read_text().startswith("<svg")
    headers, rows = table(done)
    assert headers[:4] == ["application", "grid", "scheduler", "runs"]
    assert len(rows) == 4
    told = to_json(read, done)
    assert {run["events"] for run in told["runs"]} == {"S2"}
    assert len(told["summary"]) == 4
    (tmp_path / "bad.toml").write_text(SMALL.replace("minmin", "minmax"))
    with pytest.raises(UsageError, match=r"bad\.toml.*minmax"):
        run_campaign_file(tmp_path / "bad.toml", 1, None, lambda text: None)
