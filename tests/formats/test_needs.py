"""Memory and resources in files, there and back, and files that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.formats.platform_toml import write_platform
from headrace.model.errors import BadFile, BadPlatform, BadProgram, HeadraceError
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program


def needing() -> Program:
    program = Program("needs")
    program.task(
        None, name="a", work=2.0, memory="3 GB", resources={"gpu": 1, "fpga card": 2}, outputs={"x": 5.0}
    )
    program.task(None, name="b", work=1.0, outputs={"y": 5.0})
    return program


@pytest.mark.parametrize("name", ["p.json", "p.csv", "p.graphml", "p.dot"])
def test_programs_there_and_back(tmp_path: Path, name: str) -> None:
    needing().write(tmp_path / name)
    read = Program.read(tmp_path / name)
    assert (read.tasks["a"].memory, dict(read.tasks["a"].resources)) == (3e9, {"gpu": 1, "fpga card": 2})
    assert (read.tasks["b"].memory, dict(read.tasks["b"].resources)) == (0.0, {})
    assert read.graph.needs.names == ("memory", "fpga card", "gpu")


def test_platforms_there_and_back(tmp_path: Path) -> None:
    hosts = (Host("h", memory="64 GB", resources={"gpu": 2, 'odd "name"': 1}), Host("plain"))
    write_platform(Platform((Site("a", hosts),), name="lab"), tmp_path / "lab.toml")
    read = Platform.read(tmp_path / "lab.toml")
    assert read.hosts == hosts


def test_measured_memory_is_not_a_need(tmp_path: Path) -> None:
    """What a recorded execution used says nothing about what a task needs."""
    needing().write(tmp_path / "p.json")
    document = json.loads((tmp_path / "p.json").read_text())
    for task in document["workflow"]["specification"]["tasks"]:
        task.pop("memory", None)
        task.pop("resources", None)
    for task in document["workflow"]["execution"]["tasks"]:
        task["memoryInBytes"] = 9e12
    (tmp_path / "p.json").write_text(json.dumps(document))
    assert Program.read(tmp_path / "p.json").graph.needs.names == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("memory", -1), ("memory", "3 GB"), ("memory", 1e17), ("resources", {"gpu": 0.5}), ("resources", {"gpu": -2}),
        ("resources", {"memory": 1}), ("resources", ["gpu"]), ("resources", {"": 1}), ("resources", {"gpu": 10**30}),
    ],
)  # fmt: skip
def test_wrong_needs_in_a_workflow(tmp_path: Path, key: str, value: object) -> None:
    needing().write(tmp_path / "p.json")
    document = json.loads((tmp_path / "p.json").read_text())
    document["workflow"]["specification"]["tasks"][0][key] = value
    (tmp_path / "p.json").write_text(json.dumps(document))
    with pytest.raises(HeadraceError, match=key) as raised:
        Program.read(tmp_path / "p.json")
    assert "tasks[0]" in str(raised.value) or "tasks.0" in str(raised.value)


@pytest.mark.parametrize(
    "text", ["gpu", "gpu=", "=1", "gpu=0.5", "gpu=-1", "gpu=1;gpu=2", "memory=1", "gpu=99999999999"]
)
def test_wrong_resources_in_a_table(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.csv").write_text(f"duration,output_size,resources\n1 s,5,{text}\n")
    with pytest.raises((BadFile, BadProgram), match=r"line 2.*resource"):
        Program.read(tmp_path / "p.csv")


@pytest.mark.parametrize(
    "text", ["2", "{ gpu = 0.5 }", '{ gpu = "1" }', "{ gpu = -1 }", "{ memory = 1 }", "{ gpu = true }"]
)
def test_wrong_resources_of_a_host(tmp_path: Path, text: str) -> None:
    (tmp_path / "lab.toml").write_text(
        f'[[site]]\nname = "a"\n[[site.host]]\nname = "h"\nresources = {text}\n'
    )
    with pytest.raises(BadPlatform, match="resource"):
        Platform.read(tmp_path / "lab.toml")


def test_formats_that_cannot_say_it_refuse(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="memory, resources"):
        needing().write(tmp_path / "p.pst", "pst")
