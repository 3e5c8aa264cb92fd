"""What Python callers give: files as the command takes them, quantities with units; errors say what to write."""

from __future__ import annotations

import csv
import functools
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.execution import Run
from headrace.formats.plan_json import write_plan
from headrace.given import require_arguments
from headrace.model.deferred import FUNCTIONS, deferred
from headrace.model.errors import BadFile, BadPlatform, BadProgram, NoResult, UsageError
from headrace.model.events import TaskErred, TaskFinished
from headrace.planners.list.heft import Heft
from headrace.predict.parameters import task_parameters
from headrace.record.task_code import code_digests
from headrace.run_results import Results
from headrace.runtime.execute import Outcome
from headrace.runtime.run_policy import RunPolicy

LAB_OF_TWO = hr.Platform.pairwise([2.0, 1.0], bandwidth=1e6)
LAB = 'name = "lab"\n[[site]]\nname = "s"\nbandwidth = "1 MB/s"\n[[site.host]]\nname = "h1"\nspeed = 2\n'


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "lab.toml").write_text(LAB)
    (tmp_path / "two.dot").write_text("digraph two { a [work=2]; a -> b }")
    return tmp_path


def test_functions_take_files(files: Path) -> None:
    program, lab = str(files / "two.dot"), files / "lab.toml"
    plan = hr.plan(program, lab, "HEFT")
    assert (plan.makespan, plan.scheduler) == (1.5, "heft")
    assert hr.simulate(program, str(lab), "Heft").makespan == 1.5
    plan.write(files / "plan.json")
    assert hr.check(program, lab, files / "plan.json") == []
    assert list(hr.Program.read(program).tasks) == ["a", "b"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda at: hr.plan({}, at / "lab.toml"), "the program is {}, a dict"),
        (lambda at: hr.plan(hr.Program(), hr.Program()), "the program comes first"),
        (lambda at: hr.plan(hr.Platform.local(1), at / "lab.toml"), "the program comes first"),
        (lambda at: hr.plan(at / "lab.toml", at / "lab.toml"), "is a platform, not a program"),
        (lambda at: hr.simulate(at / "two.dot", at / "two.dot"), "is a program, not a platform"),
        (lambda at: hr.run(hr.Program().graph), "nothing to execute"),
        (lambda at: hr.run(7), "the program is 7, an int"),
    ],
)
def test_wrong_arguments_are_named(call: Any, said: str, files: Path) -> None:
    with pytest.raises((UsageError, BadFile)) as caught:
        call(files)
    assert said in str(caught.value)


SEEDS = (-1, 1.5, "a", None, True, 2**64)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda p: hr.plan(p, LAB_OF_TWO, None), "the scheduler is None"),
        (lambda p: hr.plan(p, LAB_OF_TWO, object()), "the scheduler is <object"),
        (lambda p: hr.simulate(p, LAB_OF_TWO, object()), "the scheduler is <object"),
        (lambda p: hr.plan(p, LAB_OF_TWO, Heft), "make an object: Heft()"),
        (lambda p: hr.plan(p, LAB_OF_TWO, rules=5), "rules is 5, an int"),
        (lambda p: hr.plan(p, LAB_OF_TWO, rules=[5]), "rules is [5], a list"),
        (lambda p: hr.simulate(p, LAB_OF_TWO, rules=5), "rules is 5, an int"),
        (lambda p: hr.plan(p, LAB_OF_TWO, "best", time="x"), "the option time of 'best' is 'x'"),
        (lambda p: hr.simulate(p, LAB_OF_TWO, "BEST", time=None), "the option time of 'best' is None"),
        (lambda p: hr.plan(p, LAB_OF_TWO, "coschedule", chunk=1.5), "give a whole number"),
        *((lambda p, s=s: hr.plan(p, LAB_OF_TWO, seed=s), f"the seed is {s!r}") for s in SEEDS),
        *((lambda p, s=s: hr.simulate(p, LAB_OF_TWO, seed=s), f"the seed is {s!r}") for s in SEEDS),
        (lambda p: hr.replay(hr.plan(p, LAB_OF_TWO, "heft"), seed=-1), "the seed is -1"),
        (lambda p: hr.Program.read(None), "the path is None"),
        (lambda p: hr.Program.read(5), "the path is 5, an int"),
        (lambda p: hr.Platform.read(5), "the path is 5, an int"),
        (lambda p: p.write("x", 5), "the format is 5, an int"),
        (lambda p: p.write(5), "the path is 5, an int"),
        (lambda p: hr.plan(p, LAB_OF_TWO, "heft").gantt(5), "the path is 5, an int"),
        (lambda p: hr.plan(p, LAB_OF_TWO, "heft").write(5), "the path is 5, an int"),
        (lambda p: hr.replay(p, LAB_OF_TWO), "the plan comes first"),
        (lambda p: hr.replay(hr.plan(p, LAB_OF_TWO, "heft"), p), "a Plan has its program"),
        (lambda p: hr.Plan.read(5, p, LAB_OF_TWO), "the path is 5, an int"),
        (lambda p: LAB_OF_TWO.write(5), "the path is 5, an int"),
        (lambda p: LAB_OF_TWO.write("lab.toml", 5), "the format is 5, an int"),
        (lambda p: LAB_OF_TWO.write("lab.xml"), "the suffix of 'lab.xml' is unknown"),
        (
            lambda p: hr.simulate(p, LAB_OF_TWO, "heft", faults="kill=1@30%", error=0.3),
            "pass config=hr.SimulationConfig(faults=..., error=...)",
        ),
        (
            lambda p: hr.simulate(p, LAB_OF_TWO, "HEFT", events="S2"),
            "hr.SimulationConfig(policy=hr.ReplanPolicy(events=...))",
        ),
        (
            lambda p: hr.simulate(p, LAB_OF_TWO, Heft(), task_order="fifo"),
            "hr.SimulationConfig(execution=hr.ExecutionPolicy(task_order=...))",
        ),
        (lambda p: hr.replay(hr.plan(p, LAB_OF_TWO, "heft"), error="x"), "the error is 'x', a str"),
        (lambda p: hr.check(p, LAB_OF_TWO, 5), "the plan is 5, an int"),
        (lambda p: hr.check(p, LAB_OF_TWO, hr.plan(p, LAB_OF_TWO, "heft"), limit="x"), "the limit is 'x'"),
        (lambda p: hr.simulate(p, LAB_OF_TWO, config=5), "the config is 5, an int"),
        (lambda p: hr.SimulationConfig(faults=5), "faults is 5, an int"),
        (lambda p: hr.SimulationConfig(estimates=5), "estimates is 5, an int"),
        (lambda p: hr.SimulationConfig(error="x"), "error is 'x', a str"),
        (lambda p: hr.SimulationConfig(policy="neither"), "policy is 'neither', a str"),
        (lambda p: hr.SimulationConfig(planned="soon"), "planned makespan is 'soon', a str"),
        (lambda p: hr.ReplanPolicy(interval="soon"), "interval is 'soon'"),
        (lambda p: hr.ReplanPolicy(pause=None), "pause is None"),
        (lambda p: hr.ReplanPolicy(keep="2"), "keep is '2'"),
        (lambda p: hr.ReplanPolicy(misprediction="2"), "misprediction is '2'"),
        (lambda p: hr.ReplanPolicy(replan=3), "replan is 3"),
        (lambda p: hr.run(p, timeout="soon"), "timeout is 'soon'"),
        (lambda p: hr.run(p, suspect=None), "suspect is None"),
        (lambda p: hr.run(p, stretch="2"), "the stretch is '2', a str"),
        (lambda p: hr.run(p, tls=3), "the tls is 3, an int"),
        (lambda p: hr.run(p, output=3), "the folder of the results is 3, an int"),
        (lambda p: hr.run(p, record=3), "the folder of the record is 3, an int"),
        (lambda p: hr.run(p, platform=3), "the platform is 3, an int"),
        (lambda p: hr.run(p, policy=3), "the policy is 3, an int"),
        (lambda p: hr.resume(record=3), "the folder of the record is 3, an int"),
        (lambda p: hr.sweep(3), "the experiment is 3, an int"),
        (lambda p: hr.quote(3), "the experiment is 3, an int"),
        (lambda p: hr.results(3), "the experiment is 3, an int"),
    ],
)
def test_arguments_that_make_no_sense_are_named_with_what_to_pass(call: Any, said: str) -> None:
    program = hr.Program("p")
    program.task(None, name="t")
    with pytest.raises(UsageError) as caught:
        call(program)
    assert said in str(caught.value)
    assert caught.value.hint


def test_what_is_a_number_to_numpy_is_one_to_us() -> None:
    program = hr.Program("p")
    program.task(
        None, name="t", work=np.int64(3), outputs={"x": np.int64(4)}, cores=np.int32(2), labels={"a": np.float32(2)},
        release=np.float32(1.5), deadline=np.float64(math.inf), retries=np.int64(1),
    )  # fmt: skip
    task = program.tasks["t"]
    assert (task.work, task.release, task.deadline, task.retries) == (3.0, 1.5, math.inf, 1)
    assert (program.data["x"].size, task.cores, task.labels) == (4.0, 2, {"a": 2.0})
    assert type(task.labels["a"]) is float
    lab = hr.Platform.pairwise([np.float32(2), 1], bandwidth=np.float32(5))
    assert hr.plan(hr.Program(), lab, "heft", seed=np.int64(3)).platform.pairs.bandwidth.tolist() == [
        [5, 5],
        [5, 5],
    ]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda p: p.task("echo hi"), "write ['echo', 'hi']"),
        (lambda p: p.task(hr.Command("ls -l")), "write ['ls', '-l']"),  # type: ignore[arg-type]
        (lambda p: p.task(5), "a task cannot execute 5"),
        (lambda p: p.task(b"ls"), "a task cannot execute b'ls'"),
        (lambda p: p.task({"a": 1}), "a task cannot execute {'a': 1}"),
        (lambda p: p.task([]), "the command [] names no program"),
        (lambda p: p.task(hr.Command(())), "the command [] names no program"),
        (lambda p: p.task(["a", 3]), "word 1 of the command is 3, which is not a text (try: write '3')"),
        (lambda p: p.task([b"ls"]), "try: write 'ls'"),
        (lambda p: p.task(hr.Command(("a", 3))), "word 1 of the command is 3"),  # type: ignore[arg-type]
        (lambda p: p.task(None, name=3), "try: write name='3'"),
        (lambda p: p.task(None, kind=3), "try: write kind='3'"),
        (lambda p: p.input(3), "try: write name='3'"),
        (lambda p: p.task(None, outputs={3: 1}), "outputs contains 3"),
        (lambda p: p.task(abs, kwargs=[1]), "kwargs is [1]"),
        (lambda p: p.task(None, work=b"3 s"), "b'3 s' is not a time"),
        (lambda p: p.task(None, work=10**400), "an int of 1329 bits is not a time"),
        (lambda p: p.task(None, labels=[("a", "b")]), "labels is [('a', 'b')]"),
        (lambda p: p.task(None, labels={"a": 10**400}), "label 'a' is an int of 1329 bits"),
        (lambda p: p.task(None, cores=10**30), "from 1 to 1,000,000"),
        (lambda p: p.task(abs, inputs="abc"), "write inputs=['abc']"),
        (lambda p: p.task(abs, inputs=p.input("x")), "write inputs=[x]"),
        (lambda p: p.task(abs, inputs=[3]), "kwargs="),
        (lambda p: p.task(scaled, inputs={"b": "x"}), "write kwargs={'b': item}"),
        (
            lambda p: p.task(scaled, kwargs={"zz": 1}),
            "task 'scaled_0': scaled(): got an unexpected keyword argument 'zz'",
        ),
        (lambda p: p.task(scaled, inputs=["a", "b", "c"]), "scaled(): too many positional arguments"),
        (lambda p: p.task(scaled, inputs=["a"], kwargs={"x": 1}), "multiple values for argument 'x'"),
        (lambda p: p.task(functools.partial(scaled, zz=1)), "unexpected keyword argument 'zz'"),
        (lambda p: p.task(abs, outputs="abc"), "write outputs=['abc']"),
        (lambda p: p.task(abs, after="abc"), "write after=['abc']"),
        (lambda p: p.task(["ls"], kwargs={"a": 1}), "keyword arguments of a function"),
        (lambda p: p.task(abs, work="3 apples"), "unknown unit 'apples'"),
        (lambda p: p.task(abs, outputs={"x": "3 s"}), "unknown unit 's'"),
        (lambda p: p.task(abs, cores="2"), "cores is '2'"),
        (lambda p: p.task(abs, cores=0), "cores is 0"),
        (lambda p: p.task(abs, cores=1.5), "cores is 1.5"),
        (lambda p: p.input("x", size="big"), "is not a size"),
        (lambda p: p.input("x", sites="s"), "write sites=['s']"),
        (lambda p: p.input("x", 3), "write value=3"),
        (lambda p: p.output(p.input("x"), b"x"), "the path of item 'x' is b'x'"),
    ],
)
def test_tasks_that_cannot_be_meant_are_refused_with_what_to_write(make: Any, said: str) -> None:
    program = hr.Program("p")
    with pytest.raises(BadProgram) as caught:
        make(program)
    assert said in str(caught.value)
    assert program.tasks == {}
    assert program.producer == {}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: hr.Site("s", storage=None), "storage is None"),
        (lambda: hr.Link("a", "b", None), "bandwidth is None"),  # type: ignore[arg-type]
        (lambda: hr.Platform((hr.Site("s", (hr.Host("h", cores=math.nan),)),)), "cores is nan"),
        (lambda: hr.Site("s", bandwidth="fast"), "bandwidth: 'fast' is not a rate"),
        (lambda: hr.Site("s", latency="3 MB"), "unknown unit 'MB'"),
        (lambda: hr.Site("s", hosts=hr.Host("h")), "expected a list of Host"),
        (lambda: hr.Site("s", hosts=["h"]), "'h' is not a Host"),
        (lambda: hr.Host("h", speed="2x"), "speed is '2x'"),
        (lambda: hr.Host("h", memory=[]), "memory is []"),
        (lambda: hr.Host("h", kinds={"fft": "3x"}), "speed for 'fft' is '3x'"),
        (lambda: hr.Host("h", kinds=3), "kinds is 3"),
        (lambda: hr.Host("h", trace="h.trace"), "trace is 'h.trace'"),
        (lambda: hr.Link("a", "b", "10 parsec"), "unknown unit 'parsec'"),
        (lambda: hr.Platform(hr.Site("s")), "expected a list of Site"),
        (lambda: hr.Platform.pairwise([1, 2], "quick"), "is not a rate"),
        (lambda: hr.Platform.pairwise(3, 1e6), "speeds is 3"),
        (lambda: hr.Platform.pairwise([1, 2], [[1, 2, 3]]), "for 2 hosts"),
        (lambda: hr.Platform.pairwise([1, 1, 1], [1e6, 2e6, 3e6]), "3 rows of 3 numbers"),
        (lambda: hr.Platform.pairwise([1, 1, 1], [[5e6]]), "3 rows of 3 numbers"),
        (lambda: hr.Platform.pairwise([1, 1], [[1, 2], [3]]), "2 rows of 2 numbers"),
        (lambda: hr.Platform.pairwise([1], None), "bandwidth is None"),
        (lambda: hr.Platform.pairwise([1, 2], 10**400), "bandwidth is an int of 1329 bits"),
        (lambda: hr.Platform([hr.Site("s", [hr.Host("h", cores=10**30)])]), "cores is 1"),
        (lambda: hr.Platform.local(speeds="4,2"), "give a list"),
    ],
)
def test_platforms_with_wrong_values_are_typed_errors(make: Any, said: str) -> None:
    with pytest.raises(BadPlatform) as caught:
        make()
    assert said in str(caught.value)


def test_units_are_read_everywhere() -> None:
    site = hr.Site("s", [hr.Host("h", memory="2 GB")], bandwidth="1 Gbit/s", latency="1 ms", storage="1 TB")
    assert (site.bandwidth, site.latency, site.storage, site.hosts[0].memory) == (125e6, 1e-3, 1e12, 2e9)
    link = hr.Link("a", "b", bandwidth="8 Mbit/s", latency="2 s")
    assert (link.bandwidth, link.latency) == (1e6, 2.0)
    pairs = hr.Platform.pairwise([1, 2], bandwidth="1 MB/s", latency="5 ms")
    assert pairs.network.seconds(0, 1, 1e6) == pytest.approx(1.005)
    policy = hr.ReplanPolicy(events="S1", interval="2 min", pause="500 ms")
    assert (policy.interval, policy.pause) == (120.0, 0.5)
    assert RunPolicy(timeout="1 h", backoff="2 s").timeout == 3600.0  # type: ignore[arg-type]


def scaled(x: float, y: float, *, factor: float, offset: float) -> float:
    return factor * (x - y) + offset


def test_keyword_arguments_are_constants_or_items() -> None:
    program = hr.Program()
    x, y, z = (program.input(name, value=v) for name, v in (("x", 5), ("y", 2), ("z", 100)))
    program.task(scaled, name="t", inputs=[x, y], kwargs={"factor": 10, "offset": z})
    task = program.tasks["t"]
    assert (task.inputs, task.kind) == (("x", "y", "z"), "scaled")
    assert task.body is not None
    assert pickle.loads(pickle.dumps(task.body))(5, 2, 100) == 130
    assert task_parameters(program)["t"].numbers["factor"] == 10.0


def test_arguments_that_nothing_is_known_about_are_accepted() -> None:
    program = hr.Program()
    x = program.input("x", value=1)
    program.task(max, inputs=[x, x, x], kwargs={"key": str})
    program.task(functools.cache(scaled), inputs=[x], kwargs={"zz": 1})
    program.task(lambda *values, **more: 0, inputs=[x] * 3, kwargs={"zz": x})
    program.task(functools.partial(scaled, 1, factor=2), inputs=[x], kwargs={"offset": x})
    program.task(_with_one_more(scaled), inputs=[x, x], kwargs={"factor": 1})
    require_arguments(program)


def _with_one_more(function: Any) -> Any:
    @functools.wraps(function)
    def call(x: float, y: float, factor: float) -> Any:
        return function(x, y, factor=factor, offset=0)

    return call


def test_a_missing_argument_is_noticed_before_a_run_starts(tmp_path: Path) -> None:
    program = hr.Program("p")
    x = program.input("x", value=1)
    program.task(scaled, name="t", inputs=[x, x], kwargs={"factor": x})  # an experiment could set the offset
    with pytest.raises(BadProgram, match=r"p: task 't': scaled\(\): missing a required argument: 'offset'"):
        hr.run(program, workers=1, record=tmp_path)


def test_ssh_needs_a_file_of_hosts(tmp_path: Path) -> None:
    program = hr.Program("p")
    program.task(abs, inputs=[program.input("x", value=1)])
    with pytest.raises(
        UsageError, match=r"^ssh://: no file of hosts is named \(try: write ssh://hosts.toml\)"
    ):
        hr.run(program, on="ssh://", record=tmp_path)


def test_a_file_of_workers_is_no_place_to_run(tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text("")
    with pytest.raises(UsageError, match="a file that describes the workers is the option `platform`"):
        hr.run(hr.Program("p"), on=str(file), record=tmp_path)


def test_a_change_of_a_keyword_is_a_change_of_the_task() -> None:
    def digest(**kwargs: Any) -> str:
        program = hr.Program()
        items = {name: program.input(name, value=1) for name in ("a", "b", "c", "d")}
        given = {name: items.get(value, value) for name, value in kwargs.items()}
        program.task(scaled, name="t", inputs=[items["a"], items["b"]], kwargs=given)
        return code_digests(program)["t"]

    same = digest(factor=1, offset="c")
    assert same == digest(factor=1, offset="c")
    assert len({same, digest(factor=2, offset="c"), digest(offset=1, factor="c")}) == 3


def test_reprs_are_short() -> None:
    program = hr.Program("large")
    for n in range(3000):
        program.task(None, name=f"task{n}", work=1.0)
    lab = hr.Platform.pairwise([1.0] * 50, bandwidth=1e6)
    plan = hr.plan(program, lab, "heft")
    run = hr.simulate(program, lab, "workqueue")
    for each in (program, program.graph, lab, plan, run):
        assert len(repr(each)) < 200
    assert repr(program) == "<Program 'large': 3,000 tasks, 3,000 items>"
    for page in (program._repr_html_(), lab._repr_html_(), plan._repr_html_(), run._repr_html_()):
        assert len(page) < 600_000


def test_names_are_escaped_in_notebooks() -> None:
    program = hr.Program("<script>")
    program.task(None, name="<b>", kind="<i>")
    plan = hr.plan(program, hr.Platform.pairwise([1.0], bandwidth=1e6))
    for page in (program._repr_html_(), plan._repr_html_()):
        assert "<script>" not in page
        assert "<b>" not in page
        assert "<i>" not in page


def test_notebooks_show_the_memory_and_resources_of_hosts() -> None:
    hosts = [hr.Host("a", memory="8 GB", resources={"gpu": 2}), hr.Host("b")]
    shown = hr.Platform([hr.Site("s", hosts)])._repr_html_()
    assert "<th>memory</th><th>resources</th>" in shown
    assert "<td>8 GB</td><td>2 gpu</td>" in shown
    assert "<td>unlimited</td><td></td>" in shown
    assert "memory" not in LAB_OF_TWO._repr_html_()


def test_charts_and_tables_of_plans(tmp_path: Path) -> None:
    program = hr.Program()
    x = program.task(None, name="a", outputs={"x": "1 kB"})
    program.task(None, name="b", inputs=[x])
    plan = hr.plan(program, hr.Platform.pairwise([1.0], bandwidth=1e6), "heft")
    assert plan.gantt()._repr_svg_().lstrip().startswith("<svg")
    plan.gantt(tmp_path / "p.svg")
    assert (tmp_path / "p.svg").read_text() == plan.gantt().svg
    with pytest.raises(BadFile, match="SVG, not PNG"):
        plan.gantt(tmp_path / "p.png")
    frame = plan.to_pandas()
    assert list(frame["task"]) == ["a", "b"]
    assert list(plan.to_pandas("transfers").columns) == [
        "item",
        "source",
        "target",
        "size",
        "start",
        "finish",
    ]
    with pytest.raises(UsageError, match="tasks or transfers"):
        plan.to_pandas("links")  # type: ignore[arg-type]
    plan.write(tmp_path / "p.csv")
    assert [row["finish"] for row in csv.DictReader((tmp_path / "p.csv").open())] == ["1.0", "2.0"]
    with pytest.raises(UsageError, match="selects no format"):
        plan.write(tmp_path / "p.xls")


def test_plans_are_read_with_their_program_and_platform(files: Path) -> None:
    program, lab, file = files / "two.dot", files / "lab.toml", files / "plan.json"
    plan = hr.plan(program, lab, "heft")
    plan.write(file)
    found = hr.Plan.read(file, program, lab)
    assert list(found.tasks()) == list(plan.tasks())
    assert hr.replay(file, program, lab).makespan == hr.replay(found).makespan == plan.makespan
    with pytest.raises(UsageError, match="read together with its program and platform"):
        hr.replay(file)
    for wrong in (lambda: hr.replay(program, lab, file), lambda: hr.Plan.read(program, program, lab)):
        with pytest.raises(BadFile, match=r"two\.dot: is a program, not a plan"):
            wrong()
    write_plan(plan, file, made_from=(str(program), str(lab)))
    assert hr.Plan.read(file).makespan == plan.makespan


@pytest.mark.parametrize("name", ["lab.toml", "lab.ini", "lab.toml.gz"])
def test_platforms_are_written_as_they_are_read(name: str, tmp_path: Path) -> None:
    hosts = [hr.Host("h1", speed=2.0), hr.Host("h2")]
    lab = hr.Platform([hr.Site("s", hosts, bandwidth="1 MB/s")], name="lab")
    lab.write(tmp_path / name)
    found = hr.Platform.read(tmp_path / name)
    assert [host.speed for host in found.hosts] == [2.0, 1.0]
    assert found.network.seconds(0, 1, 1e6) == lab.network.seconds(0, 1, 1e6)
    with pytest.raises(BadPlatform, match="which a grid description cannot express"):
        lab.write(tmp_path / "lab.pst")


def _failed_run() -> Run:
    program = hr.Program("p")
    program.output(program.task(abs, name="f", outputs=["fa"]))
    error = TaskErred(
        1.0, "f", "w0", "task 'f': Traceback (most recent call last):\nZeroDivisionError: by zero"
    )
    done = TaskFinished(0.5, "g", "w0", start=0.25)
    outcome = Outcome({"fb": 1}, 1.0, (done, error), (error,))
    return Run("r1", "heft", None, outcome, program.graph, LAB_OF_TWO, {})


def test_a_result_that_is_not_there_says_why() -> None:
    run = _failed_run()
    assert run.results == {"fb": 1}
    assert run.results.get("fa") is None
    with pytest.raises(KeyError) as caught:
        _ = run.results["fa"]
    assert isinstance(caught.value, NoResult)
    assert "no result 'fa', because it failed: task 'f' on w0: ZeroDivisionError: by zero" in str(
        caught.value
    )
    with pytest.raises(KeyError, match="its results: fb"):
        _ = Results({"fb": 1})["fa"]


def test_tables_of_runs(tmp_path: Path) -> None:
    run = _failed_run()
    run.write(tmp_path / "run.csv")
    assert [row["finish"] for row in csv.DictReader((tmp_path / "run.csv").open())] == ["0.5"]
    assert list(run.to_pandas()["host"]) == ["w0"]
    with pytest.raises(UsageError, match="selects no format for a run"):
        run.write(tmp_path / "run.xls")


def test_parquet_needs_pyarrow(tmp_path: Path) -> None:
    program = hr.Program()
    program.task(None, name="a")
    plan = hr.plan(program, hr.Platform.pairwise([1.0], bandwidth=1e6), "heft")
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        with pytest.raises(UsageError, match="pip install pyarrow"):
            plan.write(tmp_path / "p.parquet")
    else:
        plan.write(tmp_path / "p.parquet")
        assert parquet.read_table(tmp_path / "p.parquet").to_pydict()["task"] == ["a"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_conveniences_are_where_the_model_looks_for_them(name: str) -> None:
    assert callable(deferred(name))


def test_programs_of_files_with_commands(tmp_path: Path) -> None:
    words = Path(__file__).parents[1] / "examples" / "words" / "words.json"
    with pytest.raises(UsageError, match="add allow_commands=True if you trust the file"):
        hr.run(words, record=tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError, match="nothing to execute"):
        hr.run(_dot(tmp_path), record=tmp_path / "record")
    done = hr.run(words, workers=1, record=tmp_path / "record", output=tmp_path, allow_commands=True)
    assert done.failure is None
    assert sorted(done.files) == ["counts.txt", "long.txt"]


def _dot(folder: Path) -> Path:
    file = folder / "one.dot"
    file.write_text("digraph one { a [work=2] }")
    return file


def test_the_platform_is_this_machine_by_default(files: Path) -> None:
    assert hr.plan(files / "two.dot").platform.name == "local"
    assert hr.simulate(files / "two.dot").makespan == 3.0


def test_items_are_shown_briefly() -> None:
    program = hr.Program()
    assert repr(program.input("x", value=list(range(10**6)))) == "<Data 'x'>"
    assert repr(program.input("y", "y.png", size="3 MB")) == "<Data 'y' of 3 MB at 'y.png'>"


def test_two_results_with_one_path_are_refused(tmp_path: Path) -> None:
    program = hr.Program("p")
    for name, path in (("a", "same.txt"), ("b", "./same.txt")):
        program.output(program.task(lambda: 1, outputs=[name]), path)
    with pytest.raises(UsageError, match=r"'./same.txt' is also the path of result 'a'"):
        hr.run(program, workers=1, record=tmp_path, output=tmp_path)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_of_plans_are_not_plans(suffix: str, files: Path) -> None:
    plan = hr.plan(files / "two.dot", files / "lab.toml", "heft")
    plan.write(files / f"plan.{suffix}")
    with pytest.raises(BadFile, match="read from JSON files only"):
        hr.Plan.read(files / f"plan.{suffix}", files / "two.dot", files / "lab.toml")


def test_an_empty_name_of_a_file_is_shown() -> None:
    with pytest.raises(BadFile, match=r"^'': cannot be opened"):
        hr.Platform.read("")


EXAMPLES = Path(__file__).parent.parent / "examples" / "lpsched"
AVERAGER, MARYLAND = EXAMPLES / "microscope.ini", EXAMPLES / "maryland.ini"


def test_deploy_takes_files_and_says_in_short_what_it_made() -> None:
    made = hr.deploy(str(AVERAGER), MARYLAND, "trivial")
    assert made.check() == []
    assert repr(made).startswith("<Deployment of 'microscope' on 'Maryland' by trivial: ")
    assert repr(made.problem.pipeline) == "<Pipeline 'microscope': 5 filters, 4 streams>"


def test_deploy_takes_shared_clusters_from_the_file(tmp_path: Path) -> None:
    lab = "[cluster c]\nbandwidth = 1 MB/s\nshared = yes\n[host a1..2]\ncluster = c\npower = 1\n"
    (tmp_path / "lab.ini").write_text(lab)
    pipeline = hr.Pipeline(
        "p",
        [hr.FilterProfile("read", seconds=1.0, volume=9.0), hr.FilterProfile("add", seconds=1.0)],
        sources=[hr.Source("a1", {"a1": 1.0})],
    )
    assert hr.deploy(pipeline, tmp_path / "lab.ini", "trivial").problem.segments == {"c": 1e6}
    assert hr.deploy(pipeline, tmp_path / "lab.ini", "trivial", segments={}).problem.segments == {}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: hr.deploy(None, MARYLAND), "the pipeline is None"),  # type: ignore[arg-type]
        (lambda: hr.deploy(AVERAGER, 3), "the platform is 3, an int"),  # type: ignore[arg-type]
        (lambda: hr.deploy(AVERAGER, MARYLAND, time="x"), "the argument time is 'x'"),  # type: ignore[arg-type]
        (lambda: hr.deploy(AVERAGER, MARYLAND, loads=3), "the argument loads is 3"),  # type: ignore[arg-type]
        (lambda: hr.deploy(AVERAGER, MARYLAND, knobs={}), "the argument knobs is {}"),  # type: ignore[arg-type]
        (lambda: hr.deploy(AVERAGER, MARYLAND, sources=["a"]), "'a' among the sources"),  # type: ignore[list-item]
        (lambda: hr.stream(None), "the application is None"),  # type: ignore[arg-type]
        (lambda: hr.stream("x.txt"), "'x.txt' is not a Python file"),
        (lambda: hr.run(hr.Program(), on=3), "the cluster is 3, an int"),
        (lambda: hr.run(hr.Program(), workers="2"), "the number of workers is '2'"),  # type: ignore[arg-type]
        (lambda: hr.run(hr.Program(), workers=0), "the number of workers is 0"),
        (lambda: hr.run(hr.Program(), workers=100_000), "100,000 workers on one machine"),
        (lambda: hr.run(hr.Program(), speeds=[1.0] * 1_001), "1,001 workers on one machine"),
        (lambda: hr.Platform.local(-1), "the number of workers is -1"),
        (lambda: hr.Platform.probe("tcp://127.0.0.1:1"), "the client is 'tcp://127.0.0.1:1', a str"),
    ],
)
def test_pipelines_and_clusters_of_another_type_are_named(
    call: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "record"))
    with pytest.raises(UsageError) as caught:
        call()
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["", 3])
def test_hosts_and_sites_have_names(name: Any) -> None:
    for sites in ([hr.Site("s", [hr.Host(name)])], [hr.Site(name, [hr.Host("a")])]):  # type: ignore[arg-type]
        with pytest.raises(BadPlatform, match=f"is named {name!r}"):
            hr.Platform(sites)  # type: ignore[arg-type]
