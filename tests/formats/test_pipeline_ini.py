"""Pipelines, machines, sources and deployments as files: round trips, both syntaxes, and bad files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.deploying import deploy
from headrace.formats.deployment_ini import read_deployment, write_deployment
from headrace.formats.loads import read_loads
from headrace.formats.pipeline_ini import read_pipeline, read_sources, write_pipeline
from headrace.formats.platform_ini import Machines, read_machines, write_machines
from headrace.model.errors import BadFile, HeadraceError
from headrace.model.pipeline import Pipeline
from headrace.model.platform import Platform
from planners.pipeline.instances import small

EXAMPLES = Path(__file__).parents[2] / "examples" / "lpsched"
PIPELINE = """
[filter read]
seconds = 10
volume = 100 MB
[filter add]
seconds = 25
[source a]
n1 = 1
"""
MACHINES = """
[cluster lab]
bandwidth = 100 Mbit/s
[host n1..4]
power = 2
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def same(a: Pipeline, b: Pipeline) -> bool:
    return (a.name, a.filters, a.streams, a.sources, a.knobs) == (
        b.name,
        b.filters,
        b.streams,
        b.sources,
        b.knobs,
    )


@pytest.mark.parametrize("seed", range(30))
def test_round_trip(seed: int, tmp_path: Path) -> None:
    problem = small(seed)
    write_pipeline(problem.pipeline, tmp_path / "p.ini")
    assert same(read_pipeline(tmp_path / "p.ini"), problem.pipeline)
    machines = Machines(problem.platform)
    write_machines(machines, tmp_path / "m.ini")
    again = read_machines(tmp_path / "m.ini")
    assert again.platform.sites == problem.platform.sites
    assert again.platform.links == problem.platform.links


def test_segments_survive(tmp_path: Path) -> None:
    text = MACHINES.replace("[host", "shared = yes\n[host")
    machines = read_machines(written(tmp_path, "m.ini", text))
    assert machines.segments == {"lab": 12.5e6}
    write_machines(machines, tmp_path / "n.ini")
    assert read_machines(tmp_path / "n.ini").segments == {"lab": 12.5e6}


def test_deployments_round_trip(tmp_path: Path) -> None:
    made = deploy(read_pipeline(EXAMPLES / "microscope.ini"), Platform.read(EXAMPLES / "maryland.ini"))
    write_deployment(made, tmp_path / "d.ini")
    again = read_deployment(tmp_path / "d.ini", made.problem)
    assert again.check() == []
    assert again.flows == made.flows
    assert [p[:4] for p in again.placements] == [p[:4] for p in made.placements]
    assert (again.form, again.source, again.throughput) == (made.form, made.source, made.throughput)
    write_deployment(again, tmp_path / "e.ini")
    assert (tmp_path / "d.ini").read_bytes() == (tmp_path / "e.ini").read_bytes()


def test_toml_says_the_same(tmp_path: Path) -> None:
    assert same(read_pipeline(EXAMPLES / "microscope.ini"), read_pipeline(EXAMPLES / "microscope.toml"))
    path = written(
        tmp_path,
        "p.toml",
        """
[[filter]]
name = "read"
seconds = 1
volume = 2
[[filter]]
name = "add"
seconds = 3
kind = "sum"
[[stream]]
from = "read"
to = "add"
volume = "500 kB"
[[source]]
name = "s"
shares = { a = 0.25, b = 0.75 }
[knobs]
least = 0.5
least_of = 3
""",
    )
    with pytest.raises(BadFile, match="least_of"):
        read_pipeline(path)
    path.write_text(path.read_text().replace("least_of = 3", "cross = 0.5"))
    pipeline = read_pipeline(path)
    assert pipeline.streams[0].volume == 0.5
    assert pipeline.sources[0].shares == {"a": 0.25, "b": 0.75}
    assert (pipeline.knobs.least, pipeline.knobs.cross, pipeline.filters[1].kind) == (0.5, 0.5, "sum")


def test_units_and_plain_numbers(tmp_path: Path) -> None:
    for text, megabytes in (
        ("100 MB", 100.0),
        ("100", 100.0),
        ("0.1 GB", 100.0),
        ("1e2", 100.0),
        ("1 MiB", 1.048576),
    ):
        pipeline = read_pipeline(written(tmp_path, "p.ini", PIPELINE.replace("100 MB", text)))
        assert pipeline.reader.volume == pytest.approx(megabytes)


def test_single_knobs(tmp_path: Path) -> None:
    text = PIPELINE + "[knobs]\nleast add = 0.5\ncross lab -> far = 0.25\nspare = 0.1\n"
    knobs = read_pipeline(written(tmp_path, "p.ini", text)).knobs
    assert knobs.least_share("add") == 0.5
    assert knobs.weight("lab", "far") == 0.25
    assert knobs.spare == 0.1


def test_sources_of_their_own(tmp_path: Path) -> None:
    assert [s.name for s in read_sources(EXAMPLES / "sources.ini")] == ["MG1", "MG13-16"]
    with pytest.raises(BadFile, match="no source"):
        read_sources(written(tmp_path, "p.ini", PIPELINE.split("[source")[0]))


@pytest.mark.parametrize("name", sorted(p.name for p in EXAMPLES.iterdir()))
def test_examples_are_good(name: str) -> None:
    path = EXAMPLES / name
    if name.endswith("csv"):
        assert read_loads(path)["MG4"] == [(0, 0.48), (10, 0.52), (20, 0.5)]
    elif name == "sources.ini":
        read_sources(path)
    elif name.startswith(("ufmg", "maryland")):
        assert len(read_machines(path).platform.hosts) in (19, 48, 72)
    else:
        assert read_pipeline(path).sources


def test_powers_of_kinds(tmp_path: Path) -> None:
    text = MACHINES + "reader_power = 3\npower add = 4\ncores = 2\nload = 0.25\n"
    host = read_machines(written(tmp_path, "m.ini", text)).platform.hosts[0]
    assert (host.name, host.speed, host.kinds, host.cores, host.load) == (
        "n1",
        2.0,
        {"reader": 3.0, "add": 4.0},
        2,
        0.25,
    )


BAD_PIPELINES = {
    "unknown filter": (PIPELINE + "[stream read -> ad]\n", "no filter 'ad'"),
    "cycle": (
        PIPELINE + "[filter x]\nseconds=1\n[stream read -> add]\n[stream add -> x]\n[stream x -> add]\n",
        "cycle",
    ),
    "negative power": (PIPELINE.replace("seconds = 25", "seconds = 25\npower = -1"), "power is -1"),
    "negative time": (PIPELINE.replace("seconds = 25", "seconds = -25"), "time is -25"),
    "shares": (PIPELINE.replace("n1 = 1", "n1 = 0.5"), "shares sum to 0.5"),
    "no time": (PIPELINE.replace("seconds = 25", "volume = 2"), "seconds is missing"),
    "nonsense": (PIPELINE.replace("seconds = 25", "seconds = soon"), "seconds is 'soon'"),
    "nan": (PIPELINE.replace("seconds = 25", "seconds = nan"), "seconds is 'nan'"),
    "unit": (PIPELINE.replace("100 MB", "100 parsecs"), "parsecs"),
    "unknown key": (PIPELINE.replace("seconds = 25", "seconds = 25\nvolum = 1"), "unknown key 'volum'"),
    "unknown section": (PIPELINE + "[filtre x]\n", "unknown section"),
    "no name": (PIPELINE + "[filter]\nseconds = 1\n", "no name"),
    "twice": (PIPELINE + "[filter add]\nseconds = 1\n", "duplicate"),
    "key twice": (PIPELINE.replace("seconds = 25", "seconds = 25\nseconds = 3"), "line 7 is .seconds = 3"),
    "stream without ends": (PIPELINE + "[stream read]\n", "two endpoints"),
    "no section": ("[filter a]\nseconds 3\n", "line 2 is .seconds 3"),
    "neither": ("{]", "not valid TOML"),
    "knob": (PIPELINE + "[knobs]\nhost_costs = 1\n", "unknown key 'host_costs'"),
}
BAD_MACHINES = {
    "negative power": (MACHINES.replace("power = 2", "power = -2"), "speed is -2"),
    "cluster": (MACHINES + "cluster = lap\n", "no such cluster: 'lap'"),
    "load": (MACHINES + "load = 1.5\n", "load is 1.5"),
    "link": (MACHINES + "[link lab -> moon]\nbandwidth = 1\n", "no site 'moon'"),
    "link without bandwidth": (MACHINES + "[link lab -> moon]\n", "bandwidth is missing"),
    "range": (MACHINES.replace("n1..4", "n4..1"), "not a range"),
    "huge range": (MACHINES.replace("n1..4", "n1..999999999"), "not a range"),
    "bandwidth": (MACHINES.replace("100 Mbit/s", "-3"), "bandwidth is -3"),
    "cores": (MACHINES + "cores = 1.5\n", "cores is '1.5'"),
    "flag": (MACHINES.replace("[host", "shared = perhaps\n[host"), "shared is 'perhaps'"),
    "shared what": (MACHINES.replace("bandwidth = 100 Mbit/s", "shared = yes"), "needs a bandwidth"),
    "section": (MACHINES + "[filter x]\n", "unknown section"),
}


@pytest.mark.parametrize("name", BAD_PIPELINES)
def test_bad_pipelines(name: str, tmp_path: Path) -> None:
    _refused(read_pipeline, tmp_path, *BAD_PIPELINES[name])


@pytest.mark.parametrize("name", BAD_MACHINES)
def test_bad_machines(name: str, tmp_path: Path) -> None:
    text, message = BAD_MACHINES[name]
    _refused(read_machines, tmp_path, text, message)


def _refused(read: Callable[[Path], object], folder: Path, text: str, message: str) -> None:
    path = written(folder, "bad.ini", text)
    with pytest.raises(HeadraceError, match=message.replace("[", r"\[")) as caught:
        read(path)
    assert caught.value.exit_code == 2
    assert "bad.ini" in str(caught.value)
    assert caught.value.hint


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "bad.ini").write_bytes(b"[filter a]\nseconds = \xff\n")
    with pytest.raises(BadFile, match="UTF-8"):
        read_pipeline(tmp_path / "bad.ini")


def test_bad_deployments(tmp_path: Path) -> None:
    pipeline, platform = (
        read_pipeline(written(tmp_path, "p.ini", PIPELINE)),
        Platform.read(written(tmp_path, "m.ini", MACHINES)),
    )
    made = deploy(pipeline, platform)
    path = tmp_path / "d.ini"
    write_deployment(made, path)
    good = path.read_text()
    for old, new, message in (
        ("[copies add]", "[copies ad]", "no such filter: 'ad'"),
        ("n1 = 1, ", "n9 = 1, ", "no such host: 'n9'"),
        ("n1 = 1, ", "n1 = x, ", "copies is 'x'"),
        ("form = first relaxation", "form = loose", "form is 'loose'"),
        ("[deployment]", "[deploymen]", "no \\[deployment\\]"),
        ("[copies add]", "[copy add]", "unknown section"),
    ):
        assert old in good
        path.write_text(good.replace(old, new))
        with pytest.raises(HeadraceError, match=message) as caught:
            read_deployment(path, made.problem)
        assert caught.value.exit_code == 2
    path.write_text(good.replace("throughput = ", "throughput = 1"))
    assert read_deployment(path, made.problem).check()


def test_names_that_ini_cannot_carry(tmp_path: Path) -> None:
    made = read_pipeline(written(tmp_path, "p.ini", PIPELINE))
    for name in ("a=b", "a -> b", "a#b", "[a", "", " a", "a\nb"):
        odd = Pipeline(name, made.filters)
        with pytest.raises(BadFile, match="cannot be used"):
            write_pipeline(odd, tmp_path / "out.ini")
        assert not (tmp_path / "out.ini").exists()


def test_platforms_that_ini_cannot_carry(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="INI cannot express"):
        write_machines(Machines(Platform.pairwise([1.0, 2.0], bandwidth=1e6)), tmp_path / "m.ini")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n1,0,2\n", "load 2 at 0 s"),
        ("n1,0,-0.1\n", "load -0.1"),
        ("n1\n", "is not a load"),
        ("n1,0,x\n", "is not a load"),
        ("n1,0,0.5\nn1,0,0.6\n", "two loads of 'n1' at 0 s"),
        ("# nothing\n", "no loads"),
        ("n1,inf,0.5\n", "load 0.5 at inf s"),
    ],
)
def test_bad_loads(text: str, message: str, tmp_path: Path) -> None:
    _refused(read_loads, tmp_path, text, message)


def test_loads_in_any_order_and_with_any_separator(tmp_path: Path) -> None:
    path = written(tmp_path, "l.txt", "n1 10 0.5\nn1 0 0.25\n\nn2;0.75\n")
    assert read_loads(path) == {"n1": [(0, 0.25), (10, 0.5)], "n2": [(0, 0.75)]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[filter" + b" " * 400_000 + b"\n", "not valid TOML"),
        (b" " * 400_000 + b"[filter a]\nseconds = " + b" " * 400_000 + b"#\n", "seconds is ''"),
        (b"[filter " + b"a" * 400_000 + b"]\n", "400000 characters"),
        (
            b"[filter a]\n" + b"".join(b"[stream a -> b%d]\n" % i for i in range(10_001)),
            "seconds is missing|10001 streams",
        ),
        (PIPELINE.encode() + b"".join(b"[source s%d]\nn1=1\n" % i for i in range(201)), "202 sources"),
        (b"".join(b"[filter f%d]\nseconds=1\n" % i for i in range(1_001)), "1001 filters"),
    ],
)
def test_hostile_files_end_quickly(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.ini").write_bytes(data)
    with pytest.raises(BadFile, match=message):
        read_pipeline(tmp_path / "bad.ini")
