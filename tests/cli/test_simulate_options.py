"""`headrace simulate`: every option has an effect, or is refused with a word about which scheduler takes it."""

from __future__ import annotations

import json
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
from headrace.online.adapter import accepted_policy, make_scheduler, policy_fields
from headrace.planners.list.heft import Heft
from headrace.planners.registry import names
from headrace.simulator.events.config import SimulationConfig
from headrace.simulator.events.simulate import simulate_program

PAIRS = Platform.pairwise([2.0, 1.0], bandwidth=1e6)
SHARED = Platform((Site("s", (Host("a"), Host("b"))),), name="shared", contention="fifo")
VALUES: dict[str, Any] = {
    "events": "S1",
    "interval": 10.0,
    "horizon": 2.0,
    "planning": 0.5,
    "subset": 5,
    "reduce": "random",
    "replan": "joins",
}
DECIDING = ("lheft", "dheft", "workqueue")
"""Schedulers that decide by themselves while the program runs."""


def fits(
    grid: Platform = SHARED,
    source: SimulateSource | None = None,
    execution: ExecutionPolicy | None = None,
    error: float = 0.0,
    **policy: Any,
) -> None:
    config = SimulationConfig(ReplanPolicy(**policy), execution or ExecutionPolicy(), error=error)
    require_fitting(source or SimulateSource("heft"), config, grid)


def refused(*grid: Platform, **options: Any) -> str:
    with pytest.raises(UsageError) as found:
        fits(*grid, **options)
    return str(found.value)


@pytest.mark.parametrize("scheduler", DECIDING)
@pytest.mark.parametrize("field", VALUES)
def test_options_that_a_scheduler_does_not_accept_are_refused(scheduler: str, field: str) -> None:
    given = {field: VALUES[field]} | ({"subset": 5} if field == "reduce" else {})
    source = SimulateSource(scheduler)
    if field in policy_fields(scheduler):
        require_fitting(source, SimulationConfig(ReplanPolicy(**given)), SHARED)
        return
    said = refused(source=source, **given)
    assert "does not accept" in said
    assert f"--{field}" in said
    assert ("accepts only --planning" in said) == (scheduler == "dheft")


@pytest.mark.parametrize("scheduler", [n for n in names() if n not in DECIDING])
def test_planners_accept_all_options(scheduler: str) -> None:
    config = SimulationConfig(ReplanPolicy(**VALUES))
    require_fitting(SimulateSource(scheduler), config, SHARED)
    assert make_scheduler(scheduler, config.policy).name


@pytest.mark.parametrize("scheduler", names())
def test_an_option_that_a_scheduler_lacks_is_no_traceback(scheduler: str) -> None:
    if scheduler in ("best", "coschedule"):
        assert make_scheduler(scheduler, time=3.0).name
    else:
        with pytest.raises(UsageError, match=r"does not accept 'time' \(try: best"):
            make_scheduler(scheduler, time=3.0)


def test_options_with_their_default_values_are_as_not_given() -> None:
    assert changed_options(SimulationConfig()) == []
    assert changed_options(SimulationConfig(ReplanPolicy(**VALUES))) == [f"--{name}" for name in VALUES]


PLAN = SimulateSource(plan=Path("p"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"interval": 3.0}, "--interval has no effect"),
        ({"horizon": 2.0}, "--horizon has no effect"),
        ({"interval": 3.0, "replan": "10%", "events": "S1"}, "both say when"),
        ({"reduce": "random"}, "--subset"),
        ({"reduce": "largest", "subset": 9}, "reduce is 'largest'"),
        ({"replan": "sometimes"}, "10%"),
        ({"source": SimulateSource("heft", Path("p"))}, "--scheduler would let a scheduler decide"),
        ({"source": SimulateSource(plan=Path("p"), time=2.0)}, "--time would let a scheduler decide"),
        ({"source": PLAN, "subset": 3}, "--subset would let a scheduler decide"),
        ({"error": 1.5}, "error is 1.5"),
        ({"interval": 0.0}, "interval is 0"),
        ({"interval": float("inf")}, "interval is inf"),
        ({"interval": float("nan")}, "interval is nan"),
        ({"planning": float("inf")}, "planning is inf"),
        ({"horizon": float("nan")}, "horizon is nan"),
        ({"horizon": -1.0}, "horizon is -1.0"),
        ({"replan": "0%"}, "replan is '0%'"),
        ({"replan": "inf%"}, "replan is 'inf%'"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], said: str) -> None:
    assert said in refused(**options)


def test_options_without_effect_on_a_grid() -> None:
    hybrid, steal = ExecutionPolicy(link_order="hybrid"), ExecutionPolicy(steal=True)
    assert f"the contention of {PAIRS.name} is 'none'" in refused(PAIRS, execution=hybrid)
    assert "keeps its own data" in refused(PAIRS, execution=steal)
    both = ExecutionPolicy(link_order="hybrid", steal=True)
    require_fitting(SimulateSource(), SimulationConfig(execution=both), SHARED)


def test_from_python_too() -> None:
    policy = ReplanPolicy(subset=5)
    with pytest.raises(UsageError, match="'workqueue' does not accept subset"):
        make_scheduler("workqueue", policy)
    assert make_scheduler("workqueue", accepted_policy("workqueue", policy)).name == "workqueue"


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
from headrace.core.scheduler import EVERY_EVENT, Assign
class FirstHost:
    name = "first-host"
    wake = EVERY_EVENT
    def react(self, view, events):
        return [Assign(view.graph.task_names[t], view.platform.hosts[0].name, t) for t in view.ready()]
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


def test_a_replayed_plan_has_no_log(case: tuple[str, ...], tmp_path: Path) -> None:
    assert headrace("plan", *case, "-o", "p.json", cwd=tmp_path).code == 0
    ended = headrace("simulate", *case, "--plan", "p.json", "--log", "x.log", cwd=tmp_path)
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
    wake = EVERY_EVENT

    def __init__(self) -> None:
        self.seen: list[dict[int, set[str]]] = []

    def react(self, view: RunView, events: object) -> list[Assign]:
        self.seen.append(view.holders)
        first = view.platform.hosts[0].name
        return [Assign(view.graph.task_names[t], first, t) for t in view.ready()]


def test_schedulers_of_ones_own_see_who_holds_what() -> None:
    program = Program()
    made = program.task(None, work=1.0, inputs=[program.input("i", size=1.0)], outputs={"made": 5.0})
    program.task(None, work=1.0, inputs=[made], outputs={"more": 5.0})
    watching = Watching()
    simulate_program(program, PAIRS, watching)
    item = program.graph.item_names.index("made")
    assert watching.seen[0] == {}
    assert {item: {"h0"}} in watching.seen
