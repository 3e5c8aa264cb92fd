"""Options of `simulate` that do not go together are refused, with a word about which scheduler takes them."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from cli.command import headrace
from headrace.commands.simulate_options import SimulateSource, changed_options, require_fitting
from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.replan import Replan
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import EVERY_EVENT, Assign, Problem
from headrace.core.view import RunView
from headrace.model.errors import UsageError
from headrace.model.plan import Plan
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.online.adapter import is_scheduler, make_scheduler, policy_fields
from headrace.planners.list.heft import Heft
from headrace.planners.registry import make, names
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.simulate import simulate_program

PAIRS = Platform.pairwise([2.0, 1.0], bandwidth=1e6)
SHARED = Platform((Site("s", (Host("a"), Host("b"))),), name="shared", contention="fifo")
ONLINE = [name for name in names() if is_scheduler(make(name))]
VALUES: dict[str, Any] = {
    "events": "S1",
    "interval": 10.0,
    "horizon": 2.0,
    "keep": 2,
    "planning": 0.5,
    "subset": 5,
    "reduce": "random",
    "replan": "joins",
    "misprediction": 3.0,
    "when_impossible": "drop",
}
RULES = Path("lab.rules")
OPTION = {each.name: each.metadata["option"] for each in fields(ReplanPolicy) if "option" in each.metadata}


def test_every_option_of_the_policy_is_tried_here() -> None:
    assert set(VALUES) == set(OPTION)


def refused(source: SimulateSource | None = None, grid: Platform = SHARED, **config: Any) -> str:
    with pytest.raises(UsageError) as found:
        require_fitting(source or SimulateSource(), SimulationConfig(**config), grid)
    return str(found.value)


@pytest.mark.parametrize("scheduler", ONLINE)
@pytest.mark.parametrize("name", VALUES)
def test_options_that_a_scheduler_does_not_accept_are_refused(scheduler: str, name: str) -> None:
    policy = ReplanPolicy(**{name: VALUES[name]} | ({"subset": 5} if name == "reduce" else {}))
    source = SimulateSource(scheduler, rules=RULES)
    if name in policy_fields(scheduler):
        require_fitting(source, SimulationConfig(policy), SHARED)
        return
    said = refused(source, policy=policy)
    assert f"{scheduler!r} decides by itself" in said
    assert OPTION[name] in said
    own = "--planning, --when-impossible" if scheduler == "dheft" else "--when-impossible"
    assert f"it accepts only {own}; a planner such as heft accepts all" in said


@pytest.mark.parametrize("scheduler", [name for name in names() if name not in ONLINE])
def test_planners_accept_the_whole_policy(scheduler: str) -> None:
    config = SimulationConfig(ReplanPolicy(**VALUES))
    require_fitting(SimulateSource(scheduler, rules=RULES), config, SHARED)
    assert make_scheduler(scheduler, config.policy).name


@pytest.mark.parametrize("scheduler", names())
def test_an_option_that_a_scheduler_lacks_is_no_traceback(scheduler: str) -> None:
    if scheduler in ("best", "coschedule", "search"):
        assert make_scheduler(scheduler, time=3.0).name
    else:
        with pytest.raises(UsageError, match="does not accept 'time'"):
            make_scheduler(scheduler, time=3.0)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"events": "once", "interval": 3.0}, "--interval has no effect"),
        ({"events": "once", "horizon": 2.0}, "--horizon has no effect"),
        ({"events": "S1", "interval": 3.0, "replan": "10%"}, "both say when"),
        ({"reduce": "random"}, "--subset"),
        ({"reduce": "random", "subset": 0}, "--subset"),
        ({"when_impossible": "drop"}, "--when-impossible has no effect without rules"),
    ],
)
def test_options_that_do_not_go_together(policy: dict[str, Any], said: str) -> None:
    assert said in refused(policy=ReplanPolicy(**policy))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"reduce": "largest"}, "reduce is 'largest'"),
        ({"when_impossible": "wait"}, "when_impossible is 'wait'"),
        ({"replan": "sometimes"}, "10%"),
        ({"replan": "0%"}, "replan is '0%'"),
        ({"replan": "inf%"}, "replan is 'inf%'"),
        ({"interval": 0.0}, "interval is 0"),
        ({"interval": float("inf")}, "interval is inf"),
        ({"interval": float("nan")}, "interval is nan"),
        ({"planning": float("inf")}, "planning is inf"),
        ({"horizon": float("nan")}, "horizon is nan"),
        ({"horizon": -1.0}, "horizon is -1"),
        ({"horizon": "x"}, "horizon is 'x'"),
        ({"keep": -1}, "keep is -1"),
        ({"misprediction": 1.0}, "misprediction is 1"),
        ({"events": "S9"}, "events is 'S9'"),
    ],
)
def test_values_of_the_policy_are_checked(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as found:
        ReplanPolicy(**wrong)
    assert said in str(found.value)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"estimates": "good"}, "user, history, perfect"),
        ({"error": 1.0}, "error is 1"),
        ({"error": -0.1}, "error is -0.1"),
    ],
)
def test_values_of_the_configuration_are_checked(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as found:
        SimulationConfig(**wrong)
    assert said in str(found.value)


@pytest.mark.parametrize(
    ("source", "config", "said"),
    [
        ({"scheduler": "heft"}, {}, "--scheduler would let a scheduler decide"),
        ({"time": 2.0}, {}, "--time would let a scheduler decide"),
        ({}, {"faults": "kill=1@5"}, "--faults would let a scheduler decide"),
        ({}, {"policy": ReplanPolicy("S1")}, "--events would let a scheduler decide"),
        ({}, {"execution": ExecutionPolicy(routes="nearest")}, "--routes would let a scheduler decide"),
    ],
)
def test_a_plan_from_a_file_is_replayed_as_it_is(
    source: dict[str, Any], config: dict[str, Any], said: str
) -> None:
    plan = SimulateSource(plan=Path("p"), **source)
    assert said in refused(plan, **config)
    require_fitting(SimulateSource(plan=Path("p")), SimulationConfig(error=0.2), SHARED)


def test_options_without_effect_on_a_grid() -> None:
    hybrid, steal = ExecutionPolicy(link_order="hybrid"), ExecutionPolicy(steal=True)
    assert f"the contention of {PAIRS.name} is 'none'" in refused(grid=PAIRS, execution=hybrid)
    assert "keeps its own data" in refused(grid=PAIRS, execution=steal)
    both = SimulationConfig(execution=ExecutionPolicy(link_order="hybrid", steal=True))
    require_fitting(SimulateSource(), both, SHARED)


def test_options_at_their_defaults_are_as_if_not_given() -> None:
    assert changed_options(SimulationConfig()) == []
    given = SimulationConfig(ReplanPolicy(events="once", keep=1), ExecutionPolicy(prefetch_depth=2))
    require_fitting(SimulateSource("lheft"), given, SHARED)


def test_from_python_too() -> None:
    config = SimulationConfig(ReplanPolicy(subset=5))
    with pytest.raises(UsageError, match="'workqueue' does not accept subset"):
        make_scheduler("workqueue", config.policy)
    assert make_scheduler("workqueue", config.accepted_by("workqueue").policy).name == "workqueue"


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
    for planner, make_it in ((Seeds(), None), (Seeds(), Replan)):
        scheduler = planner if make_it is None else make_it(planner, ReplanPolicy(), seed=7)
        simulate_program(program, PAIRS, scheduler, seed=7)
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
from headrace.core.scheduler import EVERY_EVENT, Assign
class FirstHost:
    name = "first-host"
    wake = EVERY_EVENT
    def react(self, view, events):
        return [Assign(view.graph.task_names[t], view.platform.hosts[0].name, t) for t in view.ready()]
"""


def test_an_own_online_scheduler(case: tuple[str, ...], tmp_path: Path) -> None:
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


def test_a_replayed_plan_has_no_log(case: tuple[str, ...], tmp_path: Path) -> None:
    assert headrace("plan", *case, "-o", "p.json", cwd=tmp_path).code == 0
    ended = headrace("simulate", *case, "--plan", "p.json", "--log", "x.log", cwd=tmp_path)
    assert (ended.code, "has no log" in ended.err) == (2, True)
    assert not (tmp_path / "x.log").exists()


def test_reproduce_and_campaign_refuse_what_they_could_not_draw(tmp_path: Path) -> None:
    for command in (["reproduce", "figure-11"], ["campaign", "unread.toml"]):
        ended = headrace(*command, "--plot", "nowhere/x.svg", cwd=tmp_path)
        assert (ended.code, "nowhere/x.svg: cannot be written" in ended.err) == (2, True)
    assert "--seeds, --plot and --real" in headrace("reproduce", "--seeds", "3", cwd=tmp_path).err
    assert headrace("reproduce", "--seeds", "0", "figure-11", cwd=tmp_path).code == 2
    assert "one of: figure-11" in headrace("reproduce", "figure-12", cwd=tmp_path).err


class Watching:
    """Everything to the first host; remembers who holds what when asked."""

    name = "watching"
    wake = EVERY_EVENT

    def __init__(self) -> None:
        self.seen: list[dict[int, set[str]]] = []

    def react(self, view: RunView, events: object) -> list[Assign]:
        self.seen.append(view.holders)
        first = view.platform.hosts[0].name
        return [Assign(view.graph.task_names[t], first, t) for t in view.ready()]


def test_own_schedulers_see_who_holds_what() -> None:
    program = Program()
    made = program.task(None, work=1.0, inputs=[program.input("i", size=1.0)], outputs={"made": 5.0})
    program.task(None, work=1.0, inputs=[made], outputs={"more": 5.0})
    watching = Watching()
    simulate_program(program, PAIRS, watching)
    item = program.graph.item_names.index("made")
    assert watching.seen[0] == {}
    assert {item: {"h0"}} in watching.seen
