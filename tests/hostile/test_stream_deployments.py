"""Deployment files for `headrace stream` that are wrong or hostile: one typed error, and nothing is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model.deployment import Deployment, Flow, Placement
from headrace.model.errors import BadFile, BadPlan, HeadraceError, UsageError
from headrace.model.pipeline import FilterProfile, Pipeline, PipelineProblem, Source
from headrace.model.platform import Host, Platform, Site
from headrace.runtime.filters import App, Filter, Reader
from headrace.runtime.streams.options import StreamOptions
from headrace.streaming import Emulated, stream

GOOD = """[deployment]
pipeline = p
throughput = 10
[copies read]
n1 = 1, 1
[copies add]
n2 = 2, 0.75
n3 = 1, 0.25
[flow read -> add]
n1 -> n2 = 7.5
n1 -> n3 = 2.5
"""


def two() -> App:
    app = App("two")
    app.filter("read", Reader)
    app.filter("add", Filter, inputs=["read"])
    return app


def changed(old: str, new: str) -> bytes:
    assert old in GOOD
    return GOOD.replace(old, new).encode()


MANY = "".join(f"m{i} = 1, 0.00025\n" for i in range(3000))
CASES: dict[str, tuple[bytes, type[HeadraceError], str]] = {
    "empty": (b"", BadFile, "deployment"),
    "zeros": (bytes(1000), BadFile, ""),
    "not text": (b"\xff\xfe[deployment]", BadFile, "UTF-8"),
    "no section of the deployment": (changed("[deployment]", "[source x]"), BadFile, "deployment"),
    "throughput below 0": (changed("throughput = 10", "throughput = -1"), BadPlan, "-1"),
    "throughput of 0": (changed("throughput = 10", "throughput = 0"), BadPlan, "throughput"),
    "infinite throughput": (changed("throughput = 10", "throughput = inf"), HeadraceError, "inf"),
    "throughput is no number": (changed("throughput = 10", "throughput = fast"), BadFile, "fast"),
    "no throughput": (changed("throughput = 10\n", ""), BadFile, "throughput"),
    "share is not a number": (changed("n2 = 2, 0.75", "n2 = 2, nan"), HeadraceError, "nan"),
    "share below 0": (changed("n3 = 1, 0.25", "n3 = 1, -0.25"), HeadraceError, "-0.25"),
    "no share": (changed("n3 = 1, 0.25", "n3 = 1"), BadFile, "share"),
    "three values": (changed("n3 = 1, 0.25", "n3 = 1, 0.25, 7"), BadFile, "0.25, 7"),
    "part of a copy": (changed("n3 = 1, 0.25", "n3 = 0.5, 0.25"), BadFile, "0.5"),
    "copies below 0": (changed("n3 = 1, 0.25", "n3 = -1, 0.25"), HeadraceError, "-1"),
    "more copies than fit": (changed("n3 = 1, 0.25", "n3 = 1000000000000, 0.25"), BadFile, "1000000000000"),
    "too many copies of all": (changed("n2 = 2, 0.75\n", MANY), BadPlan, "copies"),
    "a filter twice": (GOOD.encode() + b"[copies add]\nn2 = 1, 1\n", HeadraceError, "add"),
    "a flow twice": (GOOD.encode() + b"[flow read -> add]\nn1 -> n2 = 10\n", HeadraceError, "read -> add"),
    "a flow to nowhere": (changed("n1 -> n3", "n1 -> n7"), BadPlan, "n7"),
    "a flow from nowhere": (changed("n1 -> n3", "n7 -> n3"), BadPlan, "n7"),
    "a flow without an arrow": (changed("n1 -> n3 = 2.5", "n1 n3 = 2.5"), BadFile, "n1 n3"),
    "a flow below 0": (changed("n1 -> n3 = 2.5", "n1 -> n3 = -2.5"), HeadraceError, "-2.5"),
    "a flow without end": (changed("n1 -> n3 = 2.5", "n1 -> n3 = inf"), HeadraceError, "inf"),
    "flows that differ from the shares": (changed("n1 -> n3 = 2.5", "n1 -> n3 = 7.5"), BadPlan, "n2"),
    "a stream of another application": (changed("[flow read -> add]", "[flow add -> read]"), BadPlan, "add"),
    "a filter of another application": (changed("[copies add]", "[copies sub]"), BadPlan, "'sub'"),
    "a long name": (changed("[copies add]", f"[copies {'x' * 5000}]"), HeadraceError, "x"),
}


@pytest.fixture
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting a process is an error."""
    import subprocess

    def started(*args: object, **options: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess.Popen, "__init__", started)


@pytest.mark.parametrize("name", CASES)
def test_wrong_files_give_one_typed_error(name: str, tmp_path: Path, nothing_starts: None):
    data, error, part = CASES[name]
    file = tmp_path / "deployment.ini"
    file.write_bytes(data)
    with pytest.raises(error) as caught:
        stream(two(), deployment=file)
    message = str(caught.value)
    assert part in message
    assert "deployment.ini" in message
    assert "\n" not in message
    assert len(message) < 600


def test_a_missing_file_and_a_folder(tmp_path: Path, nothing_starts: None):
    for path in (tmp_path / "none.ini", tmp_path):
        with pytest.raises(BadFile, match=path.name):
            stream(two(), deployment=path)


PIPELINE = Pipeline(
    "other",
    [FilterProfile("read", 1.0, 1.0), FilterProfile("sub", 1.0)],
    sources=[Source("n1", {"n1": 1.0})],
)


def test_a_deployment_of_another_pipeline(nothing_starts: None):
    lab = Platform((Site("lab", (Host("n1"), Host("n2")), bandwidth=1e6),))
    made = Deployment(
        PipelineProblem(PIPELINE, lab),
        "mine",
        "strict",
        "n1",
        1.0,
        (Placement("read", "n1", 1, 1.0, 1.0, 1.0), Placement("sub", "n2", 1, 1.0, 1.0, 1.0)),
        (Flow("read", "sub", "n1", "n2", 1.0),),
        1.0,
        1.0,
    )
    with pytest.raises(BadPlan, match="no filter 'sub'"):
        stream(two(), deployment=made)


def test_options_that_do_not_fit(tmp_path: Path, nothing_starts: None):
    file = tmp_path / "deployment.ini"
    file.write_text(GOOD)
    for given, problem in (
        ({"workers": 3}, "workers have no effect"),
        ({"emulate": Emulated(speeds=[1.0, 2.0])}, "2 speeds for 3 hosts"),
        ({"emulate": Emulated(speeds=[1, 1, 1], slowdowns={"n9": (1.0, 2.0)})}, "'n9'"),
        ({"emulate": Emulated(speeds=[1, 1, 1], slowdowns={"n1": (1.0, 0.5)})}, "0.5 times"),
        ({"emulate": Emulated(slower=2.0)}, "slower has no effect"),
        ({"pipeline": PIPELINE}, "pipeline has no effect"),
        ({"options": StreamOptions(routing="least-loaded", adapt=True)}, "adapt has no effect"),
        (
            {"options": StreamOptions(routing="round-robin", work_conserving=True)},
            "work-conserving has no effect",
        ),
        ({"on": "tls://nowhere:1", "emulate": Emulated(speeds=[1, 1, 1])}, "only local runs"),
        ({"on": "nowhere"}, "cannot run on 'nowhere'"),
    ):
        with pytest.raises(UsageError, match=problem):
            stream(two(), deployment=file, **given)


@pytest.mark.parametrize(
    "wrong",
    [
        {"credits": 0},
        {"stall": 0.0},
        {"stall": float("nan")},
        {"duration": -1.0},
        {"duration": float("inf")},
        {"restarts": -1},
        {"routing": "by chance"},
    ],
)
def test_options_out_of_range(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        StreamOptions(**wrong)
