"""`headrace simulate`: every option has an effect, or is refused with a word about which scheduler takes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.command import headrace
from headrace.commands.simulate_options import RULES, SimulateOptions, require_fitting, setting_of
from headrace.core.replan import Replan
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import Assign, Problem
from headrace.model.errors import UsageError
from headrace.model.plan import Plan
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.planners.list.heft import Heft
from headrace.planners.registry import names
from headrace.simulator.events.simulate import (
    ONLINE,
    SimulationConfig,
    make_online,
    rules_taken,
    simulate_program,
)

PAIRS = Platform.pairwise([2.0, 1.0], bandwidth=1e6)
SHARED = Platform((Site("s", (Host("a"), Host("b"))),), name="shared", contention="fifo")
VALUES = {
    "events": "S1",
    "interval": 10.0,
    "horizon": "2",
    "planning": 0.5,
    "subset": 5,
    "reduce": "random",
    "replan": "joins",
}


def refused(grid: Platform = SHARED, **options: object) -> str:
    with pytest.raises(UsageError) as found:
        require_fitting(SimulateOptions(**options), grid)  # type: ignore[arg-type]
    return str(found.value)


@pytest.mark.parametrize("scheduler", sorted(ONLINE))
@pytest.mark.parametrize("rule", RULES)
def test_rules_that_a_scheduler_does_not_take_are_refused(scheduler: str, rule: str) -> None:
    given = {rule: VALUES[rule]} | ({"subset": 5} if rule == "reduce" else {})
    if rule in rules_taken(scheduler):
        require_fitting(SimulateOptions(scheduler, **given), SHARED)  # type: ignore[arg-type]
        return
    said = refused(scheduler=scheduler, **given)
    assert f"takes no --{rule}" in said or f"--{rule}" in said
    assert "--planning;" in said if scheduler == "dheft" else "takes none" in said


@pytest.mark.parametrize("scheduler", [n for n in names() if n not in ONLINE])
def test_planners_take_all_rules(scheduler: str) -> None:
    options = SimulateOptions(scheduler, **VALUES)  # type: ignore[arg-type]
    require_fitting(options, SHARED)
    assert make_online(scheduler, setting_of(options)).name


@pytest.mark.parametrize("scheduler", names())
def test_an_option_that_a_scheduler_lacks_is_no_traceback(scheduler: str) -> None:
    if scheduler in ("best", "coschedule"):
        assert make_online(scheduler, time=3.0).name
    else:
        with pytest.raises(UsageError, match="takes no 'time'"):
            make_online(scheduler, time=3.0)


def test_every_rule_reaches_the_setting() -> None:
    rules = setting_of(SimulateOptions(**VALUES)).rules  # type: ignore[arg-type]
    assert rules == ReplanPolicy(
        "S1", 10.0, horizon=2.0, planning=0.5, subset=5, reduce="random", replan="joins"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"events": "once", "interval": 3.0}, "--interval says otherwise"),
        ({"events": "once", "horizon": "2"}, "--horizon says otherwise"),
        ({"events": "once", "replan": "10%"}, "--replan 10% says otherwise"),
        ({"interval": 3.0, "replan": "10%"}, "both say when"),
        ({"reduce": "random"}, "--subset"),
        ({"reduce": "random", "subset": 0}, "--subset"),
        ({"reduce": "largest", "subset": 9}, "--reduce is 'largest'"),
        ({"replan": "sometimes"}, "10%"),
        ({"plan": Path("p"), "scheduler": "heft"}, "--scheduler is for making one"),
        ({"plan": Path("p"), "time": 2.0}, "--time is for making one"),
        ({"plan": Path("p"), "faults": "kill=1@5"}, "let a scheduler decide"),
        ({"estimates": "good"}, "user, history, perfect"),
        ({"seed": -1}, "--seed is -1"),
        ({"interval": 0.0}, "interval is 0"),
        ({"interval": float("inf")}, "interval is inf"),
        ({"interval": float("nan")}, "interval is nan"),
        ({"planning": float("inf")}, "planning is inf"),
        ({"horizon": "nan"}, "--horizon is 'nan'"),
        ({"horizon": "-1"}, "--horizon is '-1'"),
        ({"replan": "0%"}, "--replan is '0%'"),
        ({"replan": "inf%"}, "--replan is 'inf%'"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, object], said: str) -> None:
    assert said in refused(**options)


def test_options_without_effect_on_a_grid() -> None:
    assert f"the contention of {PAIRS.name} is 'none'" in refused(PAIRS, links="hybrid")
    assert "keeps its own data" in refused(PAIRS, steal=True)
    require_fitting(SimulateOptions(links="hybrid", steal=True), SHARED)


def test_from_python_too() -> None:
    with pytest.raises(UsageError, match="'workqueue' does not take subset"):
        make_online("workqueue", SimulationConfig(ReplanPolicy(subset=5)))
    assert (
        make_online("workqueue", SimulationConfig(ReplanPolicy(subset=5)).fitted("workqueue")).name
        == "workqueue"
    )


@pytest.mark.parametrize("wrong", [{"reduce": "x"}, {"replan": "x"}, {"horizon": "x"}, {"horizon": -1.0}])
def test_rules_from_python_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ReplanPolicy(**wrong)


class Seeds(Heft):
    """HEFT that remembers the seeds of the problems it was given."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def plan(self, problem: Problem) -> Plan:
        self.seen.append(problem.seed)
        return super().plan(problem)


def test_planners_that_draw_get_the_seed_in_a_run() -> None:
    program = Program()
    program.task(None, work=1.0)
    planner = Seeds()
    simulate_program(program, PAIRS, Replan(planner, ReplanPolicy(), seed=7))
    assert set(planner.seen) == {7}


@pytest.fixture
def case(tmp_path: Path) -> tuple[str, ...]:
    program = {"name": "p", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": [
        {"name": "t", "id": "t", "parents": [], "children": [], "inputFiles": [], "outputFiles": []}],
        "files": []}, "execution": {"makespanInSeconds": 1, "executedAt": "2024-01-01T00:00:00Z",
        "tasks": [{"id": "t", "runtimeInSeconds": 3}]}}}  # fmt: skip
    (tmp_path / "one.json").write_text(json.dumps(program))
    (tmp_path / "two.toml").write_text('[[site]]\nname = "s"\n[[site.host]]\nname = "h"\ncount = 2\n')
    return ("one.json", "--on", "two.toml")


def test_the_command_says_it_in_one_line(case: tuple[str, ...], tmp_path: Path) -> None:
    for options in (["--time", "3", "--steal"], ["--events", "S1"], ["--subset", "4", "--reduce", "random"]):
        ended = headrace("simulate", *case, "-s", "lheft", *options, cwd=tmp_path)
        assert ended.code == 2
        assert "lheft" in ended.err
        assert ended.err.count("\n") == 1


OWN = """
from headrace.core.scheduler import Assign
class FirstHost:
    name = "first-host"
    def react(self, state, events):
        return [Assign(state.graph.task_names[t], state.platform.hosts[0].name, t) for t in state.waiting()]
"""


def test_an_online_scheduler_of_ones_own(case: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    command = ("simulate", *case, "-s", "own.py:FirstHost", "--faults", "kill=h2@50%", "--json")
    ended = headrace(*command, cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["tasks"][0]["host"] == "h1"
    assert headrace(*command, "--events", "S1", cwd=tmp_path).code == 2


@pytest.mark.parametrize(("option", "target"), [("--gantt", "nowhere/x"), ("--trace", "."), ("--log", "/")])
def test_outputs_that_cannot_be_written_are_refused_at_once(
    case: tuple[str, ...], tmp_path: Path, option: str, target: str
) -> None:
    ended = headrace("simulate", "unread.json", *case[1:], "--events", "S1", option, target, cwd=tmp_path)
    assert ended.code == 2
    assert f"error: {target}: cannot be written" in ended.err


def test_a_carried_plan_has_no_log(case: tuple[str, ...], tmp_path: Path) -> None:
    ended = headrace("simulate", *case, "--log", "x.log", cwd=tmp_path)
    assert (ended.code, "has no log" in ended.err) == (2, True)
    assert not (tmp_path / "x.log").exists()


def test_reproduce_and_campaign_refuse_what_they_could_not_draw(tmp_path: Path) -> None:
    for command in (["reproduce", "figure-11"], ["campaign", "unread.toml"]):
        ended = headrace(*command, "--plot", "nowhere/x.svg", cwd=tmp_path)
        assert (ended.code, "nowhere/x.svg: cannot be written" in ended.err) == (2, True)
    assert "--seeds and --plot" in headrace("reproduce", "--seeds", "3", cwd=tmp_path).err
    assert headrace("reproduce", "--seeds", "0", "figure-11", cwd=tmp_path).code == 2
    assert "one of: figure-11" in headrace("reproduce", "figure-12", cwd=tmp_path).err


class Watching:
    """Everything to the first host; remembers who holds what when asked."""

    name = "watching"

    def __init__(self) -> None:
        self.seen: list[dict[int, set[str]]] = []

    def react(self, state: Any, events: object) -> list[Assign]:
        self.seen.append(state.holders)
        first = state.platform.hosts[0].name
        return [Assign(state.graph.task_names[t], first, t) for t in state.waiting()]


def test_schedulers_of_ones_own_see_who_holds_what() -> None:
    program = Program()
    made = program.task(None, work=1.0, inputs=[program.input("i", size=1.0)], outputs={"made": 5.0})
    program.task(None, work=1.0, inputs=[made], outputs={"more": 5.0})
    watching = Watching()
    simulate_program(program, PAIRS, watching)
    item = program.graph.item_names.index("made")
    assert watching.seen[0] == {}
    assert {item: {"h0"}} in watching.seen
