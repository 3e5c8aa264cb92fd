"""WfFormat: real instances, older layouts, round trips."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.strategies import amounts, commands, programs
from headrace.formats.task_edges import task_edges
from headrace.formats.wfformat import read_program, write_program
from headrace.model.errors import BadFile, BadProgram
from headrace.model.program import Program

HERE = Path(__file__).parent / "data"
INSTANCES = Path(__file__).parents[3] / "shared" / "data" / "wfinstances"
times = st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=3)
# tasks, edges, levels, widest level, seconds, files, bytes
REAL = {
    "montage-chameleon-dss-15d-001": (2122, 6114, 8, 1890, 78087.5, 2463, 24_221_140_464),
    "epigenomics-chameleon-ilmn-6seq-50k-001": (1695, 2108, 9, 420, 26060.0, 2119, 12_696_387_363),
    "seismology-chameleon-1100p-001": (1101, 1100, 2, 1100, 584.8, 3304, 18_373_308),
    "bwa-chameleon-large-001": (1004, 4000, 3, 1000, 13276.7, 3012, 56_793_009),
    "1000genome-chameleon-22ch-250k-001": (902, 1166, 3, 572, 53409.6, 954, 75_617_738_810),
    "atacseq-dirt02-001": (265, 593, 17, 32, 7799.6, 775, 853_006_869),
    "srasearch-chameleon-30a-001": (64, 92, 4, 31, 50375.2, 130, 40_977_927_033),
    "synthetic/wfgen16-montage-12000-s11": (11981, 43351, 8, 10197, 1_849_646.6, 23931, 95_108_328_876),
}


def same(a: Program, b: Program) -> None:
    """Equal in everything that a file keeps, order included."""
    assert a.name == b.name
    assert [
        (t.name, t.work, t.inputs, t.outputs, t.kind, t.after, t.arch_speeds) for t in a.tasks.values()
    ] == [(t.name, t.work, t.inputs, t.outputs, t.kind, t.after, t.arch_speeds) for t in b.tasks.values()]
    assert list(a.data.values()) == list(b.data.values())
    assert a.producer == b.producer


def figures(program: Program) -> tuple[int, int, int, int, float, int, float]:
    graph = program.graph
    levels = graph.level.tolist()
    edges = sum(1 for _ in task_edges(program))
    widest = max(levels.count(level) for level in set(levels))
    work = round(float(graph.work.sum()), 1)
    return graph.n_tasks, edges, max(levels) + 1, widest, work, graph.n_items, float(graph.size.sum())


@pytest.mark.parametrize("name", REAL)
def test_real_instances_have_the_figures_of_their_table(name: str) -> None:
    path = INSTANCES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("the instances are not here")
    assert figures(read_program(path)) == REAL[name]


def test_the_instance_kept_here() -> None:
    program = read_program(HERE / "srasearch-chameleon-30a-001.json.gz")
    assert figures(program) == REAL["srasearch-chameleon-30a-001"]
    assert program.graph.kinds == ("bowtie2-build", "fasterq-dump", "bowtie2", "merge")
    assert all(task.body is None and task.after == () for task in program.tasks.values())


def test_layout_of_1_3() -> None:
    program = read_program(HERE / "diamond-1.3.json")
    tasks = program.tasks
    assert next(iter(tasks)) == "split_ID0000001"
    assert [t.kind for t in tasks.values()] == ["split", "count", "count", "sum up", "cleanup"]
    assert [t.work for t in tasks.values()] == [2.5, 4.0, 6.0, 1.0, 0.0]
    assert program.data["left.txt"].size == 400  # its writer's word, not its reader's 999
    assert tasks["add_ID0000004"].after == ("split_ID0000001",)  # by parents alone
    assert tasks["count_ID0000003"].after == ()  # a parent by id, implied by a file
    assert tasks["cleanup_ID0000005"].after == ("add_ID0000004",)
    assert [d.name for d in program.inputs()] == ["all.txt"]


def test_layout_of_1_4_with_repeated_names() -> None:
    program = read_program(HERE / "repeated-names-1.4.json")
    assert list(program.tasks) == ["TRIM_1", "TRIM_2", "REPORT"]
    assert program.tasks["TRIM_1"].kind == "TRIM"
    assert program.data["/scratch/b2/out.fq"].size == 80
    assert program.tasks["REPORT"].inputs == ("/scratch/a1/out.fq",)
    assert program.tasks["REPORT"].after == ("TRIM_2",)  # listed among TRIM_2's children only


def test_layout_of_1_6() -> None:
    program = read_program(HERE / "chain-1.6.json")
    assert [(t.name, t.kind, t.outputs) for t in program.tasks.values()] == [
        ("make_00000001", "make", ("mid.dat",)),
        ("use_00000002", "use", ()),
    ]
    assert program.data["mid.dat"].size == 22


@pytest.mark.parametrize("name", ["diamond-1.3.json", "repeated-names-1.4.json", "chain-1.6.json"])
def test_older_layouts_survive_being_written_as_1_5(name: str, tmp_path: Path) -> None:
    program = read_program(HERE / name)
    write_program(program, tmp_path / "x.json.gz")
    same(read_program(tmp_path / "x.json.gz"), program)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(program=programs(sizes=st.none() | amounts, work=amounts | times))
def test_programs_survive_a_round_trip(program: Program, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("wf") / "p.json"
    write_program(program, path)
    first = path.read_bytes()
    back = read_program(path)
    same(back, program)
    assert [d.name for d in back.results()] == [d.name for d in program.results()]
    write_program(back, path)
    assert path.read_bytes() == first


@settings(max_examples=20, deadline=None, derandomize=True)
@given(program=commands())
def test_commands_are_written_but_never_become_runnable(
    program: Program, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("wf") / "p.json"
    write_program(program, path)
    back = read_program(path)
    same(back, program)
    assert all(task.body is None for task in back.tasks.values())
    for task, run in zip(
        program.tasks.values(), json.loads(path.read_bytes())["workflow"]["execution"]["tasks"], strict=True
    ):
        argv = task.body.argv  # type: ignore[union-attr]
        if argv:
            assert [run["command"]["program"], *run["command"]["arguments"]] == list(argv)


def test_gzipped_output_is_the_same_every_time(tmp_path: Path) -> None:
    program = read_program(HERE / "diamond-1.3.json")
    write_program(program, tmp_path / "a.json.gz")
    write_program(program, tmp_path / "b.json.gz")
    write_program(program, tmp_path / "c.json")
    packed = (tmp_path / "a.json.gz").read_bytes()
    assert packed == (tmp_path / "b.json.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "c.json").read_bytes()


def test_too_many_tasks(tmp_path: Path) -> None:
    with pytest.raises(BadProgram, match="5 tasks, more than 4"):
        read_program(HERE / "diamond-1.3.json", max_tasks=4)


def test_a_name_that_is_not_text_cannot_be_written(tmp_path: Path) -> None:
    program = Program("x")
    program.task(name="half \ud800 pair")
    with pytest.raises(BadFile, match="half"):
        write_program(program, tmp_path / "x.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_the_first_versions_have_jobs_instead_of_tasks(version: str, tmp_path: Path) -> None:
    document = json.loads((HERE / "diamond-1.3.json").read_text())
    document["schemaVersion"] = version
    jobs = document["workflow"].pop("tasks")
    for job in jobs:  # the first versions have neither ids nor categories, and name parents by name
        job["parents"] = [{"ID0000001": "split_ID0000001"}.get(name, name) for name in job["parents"]]
        for key in ("id", "category", "command") if version != "1.2" else ():
            job.pop(key, None)
    document["workflow"]["jobs"] = jobs
    (tmp_path / "old.json").write_text(json.dumps(document))
    old, known = read_program(tmp_path / "old.json"), read_program(HERE / "diamond-1.3.json")
    assert [(t.name, t.work, t.inputs, t.outputs, t.after) for t in old.tasks.values()] == [
        (t.name, t.work, t.inputs, t.outputs, t.after) for t in known.tasks.values()
    ]
