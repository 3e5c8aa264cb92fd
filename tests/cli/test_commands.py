"""The commands on real files, as a user calls them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import networkx as nx
import pytest

from cli.command import headrace

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / "tests" / "formats" / "data" / "srasearch-chameleon-30a-001.json.gz"
LAB = ROOT / "examples" / "lab.toml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(WORKFLOW, tmp_path / "sra.json.gz")
    shutil.copy(LAB, tmp_path / "lab.toml")
    return tmp_path


def test_help_names_every_command(tmp_path: Path) -> None:
    ended = headrace("--help", cwd=tmp_path)
    assert ended.code == 0
    for command in ("demo", "schedulers", "check", "plan", "simulate", "run", "runs", "convert"):
        assert command in ended.out


def test_plan_check_simulate_agree(folder: Path) -> None:
    files = ("-o", "plan.json", "--gantt", "plan.svg")
    planned = headrace("plan", "sra.json.gz", "--on", "lab.toml", "-s", "heft", *files, "--json", cwd=folder)
    assert planned.code == 0, planned.err
    plan = json.loads(planned.out)
    assert {"scheduler", "makespan", "bound", "seconds", "tasks", "transfers"} <= plan.keys()
    assert len(plan["tasks"]) == 64
    assert {"id", "host", "start", "finish"} <= plan["tasks"][0].keys()
    assert {"data", "from", "to", "start", "finish"} <= plan["transfers"][0].keys()
    assert plan["makespan"] == pytest.approx(max(row["finish"] for row in plan["tasks"] + plan["transfers"]))
    assert (folder / "plan.svg").read_text().startswith("<svg")
    for files in (["sra.json.gz", "lab.toml", "plan.json"], ["plan.json"]):
        checked = headrace("check", *files, cwd=folder)
        assert checked.code == 0, checked.err
        assert "valid" in checked.out
    simulated = headrace(
        "simulate", "sra.json.gz", "--on", "lab.toml", "--plan", "plan.json", "--json", cwd=folder
    )
    happened = json.loads(simulated.out)
    assert happened["makespan"] == pytest.approx(plan["makespan"], rel=1e-9)
    assert happened["events"] == 2 * (len(plan["tasks"]) + len(plan["transfers"]))


def test_a_plan_that_was_tampered_with_is_judged(folder: Path) -> None:
    headrace("plan", "sra.json.gz", "--on", "lab.toml", "-o", "plan.json", cwd=folder)
    plan = json.loads((folder / "plan.json").read_text())
    late = max(plan["tasks"], key=lambda row: row["start"])
    late["start"], late["finish"] = 0.0, late["finish"] - late["start"]
    (folder / "plan.json").write_text(json.dumps(plan))
    checked = headrace("check", "sra.json.gz", "lab.toml", "plan.json", "--json", cwd=folder)
    assert checked.code == 2
    answer = json.loads(checked.out)
    assert not answer["ok"]
    assert any(late["id"] in violation for violation in answer["files"][-1]["violations"])
    assert (
        headrace("simulate", "sra.json.gz", "--on", "lab.toml", "--plan", "plan.json", cwd=folder).code == 2
    )


@pytest.mark.slow
def test_simulating_with_errors_depends_on_the_seed_alone(folder: Path) -> None:
    def makespan(seed: int) -> float:
        ended = headrace(
            "simulate",
            "sra.json.gz",
            "--on",
            "lab.toml",
            "--error",
            "0.4",
            "--seed",
            str(seed),
            "--json",
            cwd=folder,
        )
        return float(json.loads(ended.out)["makespan"])

    assert makespan(1) == makespan(1) != makespan(2)


@pytest.mark.slow
def test_convert_to_what_other_tools_read(folder: Path) -> None:
    for target in ("sra.dot", "sra.graphml", "sra.nodelink.json", "again.json"):
        ended = headrace("convert", "sra.json.gz", target, cwd=folder)
        assert ended.code == 0, ended.err
    graph = nx.read_graphml(folder / "sra.graphml")
    linked = nx.node_link_graph(json.loads((folder / "sra.nodelink.json").read_text()), edges="edges")
    assert len(graph) == len(linked) == 64
    assert graph.number_of_edges() == linked.number_of_edges() == 92
    assert "digraph" in (folder / "sra.dot").read_text()
    same = headrace("check", "again.json", cwd=folder).out.split(": ", 2)[2]
    assert same == headrace("check", "sra.json.gz", cwd=folder).out.split(": ", 2)[2]
    headrace("plan", "sra.json.gz", "--on", "lab.toml", "-o", "plan.json", cwd=folder)
    assert headrace("convert", "plan.json", "plan.trace.json", cwd=folder).code == 0
    trace = json.loads((folder / "plan.trace.json").read_text())
    assert sum(event["ph"] == "X" for event in trace["traceEvents"]) >= 64


def test_wrong_usage_teaches(folder: Path) -> None:
    for args, part in (
        (["plan"], "headrace plan: missing argument 'PROGRAM'"),
        (["simulate", "--bogus"], "headrace simulate: no such option: --bogus"),
        (["simulate", "sra.json.gz", "--runs", "some"], "headrace simulate: --runs is 'some'"),
        (["plan", "sra.json.gz", "--on", "lab.toml", "-s", "hefd"], "'heft'"),
        (["plan", "sra.json.gz", "--on", "nowhere.toml"], "nowhere.toml"),
        (["convert", "sra.json.gz", "x.png"], "selects no format"),
        (["simulate", "sra.json.gz", "--on", "lab.toml", "--error", "2"], "error is 2.0"),
        (["run", "sra.json.gz"], "--emulate"),
        (["run", "sra.json.gz", "--emulate", "--size-scale", "0", "--on", "mars"], "tls://"),
        (["runs", "19700101-000000-001"], "there is no run"),
        (["nonsense"], "nonsense"),
    ):
        ended = headrace(*args, cwd=folder)
        assert ended.code == 2, (args, ended)
        assert ended.err.startswith("error: ")
        assert part in ended.err
        assert "try: " in ended.err


def test_no_feasible_plan_is_exit_code_3(folder: Path) -> None:
    (folder / "small.toml").write_text(
        'name = "small"\norigin = "a"\n[[site]]\nname = "a"\nuplink = "1 MB/s"\n[[site]]\nname = "b"\n'
        'uplink = "1 MB/s"\nstorage = "1 kB"\n[[site.host]]\nname = "h"\n'
    )
    ended = headrace("plan", "sra.json.gz", "--on", "small.toml", cwd=folder)
    assert ended.code == 3
    assert "storage" in ended.err


@pytest.mark.slow
def test_the_same_plan_for_every_hash_seed(folder: Path) -> None:
    outs = set()
    for seed in ("0", "1", "77"):
        env = {"PYTHONHASHSEED": seed}
        headrace("plan", "sra.json.gz", "--on", "lab.toml", "-o", "plan.json", cwd=folder, env=env)
        plan = json.loads((folder / "plan.json").read_text())
        del plan["seconds"]
        outs.add(json.dumps(plan))
    assert len(outs) == 1


def test_a_scheduler_from_a_file_of_ones_own(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "from headrace.planners.list.round_robin import RoundRobin\n"
        "class Mine(RoundRobin):\n    name = 'mine'\n"
        "class Not:\n    pass\n"
    )
    ended = headrace("plan", "sra.json.gz", "--on", "lab.toml", "-s", "mine.py:Mine", "--json", cwd=folder)
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["tasks"]
    for name, part in (("Nope", "does not define 'Nope'"), ("Not", "is neither a planner nor a scheduler")):
        ended = headrace("plan", "sra.json.gz", "--on", "lab.toml", "-s", f"mine.py:{name}", cwd=folder)
        assert ended.code == 2
        assert part in ended.err


def test_a_plan_of_a_python_program_is_converted_only_with_the_program_named(folder: Path) -> None:
    (folder / "ran.py").write_text(
        "from pathlib import Path\nimport headrace as hr\nPath('it-ran').touch()\n"
        "program = hr.Program('one')\nprogram.task(None, work=1.0)\n"
    )
    assert headrace("plan", "ran.py", "--on", "lab.toml", "-o", "plan.json", cwd=folder).code == 0
    (folder / "it-ran").unlink()
    refused = headrace("convert", "plan.json", "plan.trace.json", cwd=folder)
    assert refused.code == 2
    assert "--program" in refused.err
    assert not (folder / "it-ran").exists(), "a file that a plan only names is not run"
    assert headrace("convert", "plan.json", "plan.trace.json", "--program", "ran.py", cwd=folder).code == 0
