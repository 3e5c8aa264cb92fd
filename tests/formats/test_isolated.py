"""Isolated sites, and tables without names of columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.formats.loading import load_machines, load_platform, load_program
from headrace.formats.platform_ini import Machines, write_machines
from headrace.formats.platform_toml import write_platform
from headrace.model.errors import BadFile, BadPlatform
from headrace.model.hub import possibly_isolated
from headrace.model.link_graph import link_graph

APART = """
[[site]]
name = "a"
bandwidth = "10 MB/s"
host = [{name = "a1"}]
[[site]]
name = "b"
bandwidth = "10 MB/s"
host = [{name = "b1"}]
"""


def test_toml_says_so(tmp_path: Path) -> None:
    file = tmp_path / "apart.toml"
    file.write_text(APART)
    with pytest.raises(BadPlatform, match="isolated = true"):
        load_platform(file)
    file.write_text(f"isolated = true\n{APART}")
    platform = load_platform(file)
    assert platform.network.bandwidth(0, 1) == 0.0
    write_platform(platform, tmp_path / "again.toml")
    assert load_platform(tmp_path / "again.toml").isolated


def test_ini_may(tmp_path: Path) -> None:
    file = tmp_path / "apart.ini"
    file.write_text(
        "[cluster a]\nbandwidth = 1\n[cluster b]\nbandwidth = 1\n[host x]\ncluster = a\n[host y]\ncluster = b\n"
    )
    assert load_machines(file).platform.network.bandwidth(0, 1) == 0.0


HUB = "[host x]\ncluster = a\n[host y]\ncluster = b\n[cluster a]\nuplink = 1\n[cluster b]\n"
AWAY = "[cluster c]\n[cluster d]\n[host z]\ncluster = d\n[link c -> d]\nbandwidth = 5\n"


@pytest.mark.parametrize("more", ["", AWAY])
def test_in_ini_a_cluster_without_a_rate_is_at_the_hub_of_the_others(more: str, tmp_path: Path) -> None:
    file = tmp_path / "hub.ini"
    file.write_text(HUB + more)
    machines = load_machines(file)
    assert machines.platform.network.bandwidth(0, 1) == 1e6
    assert machines.platform.isolated == bool(more)
    write_machines(machines, tmp_path / "again.ini")
    assert load_machines(tmp_path / "again.ini").platform.network.bandwidth(0, 1) == 1e6


def test_sites_at_the_hub_may_be_isolated_in_toml(tmp_path: Path) -> None:
    file = tmp_path / "hub.toml"
    uplink = APART.replace('name = "a"', 'name = "a"\nuplink = "1 MB/s"')
    file.write_text(uplink)
    platform = load_platform(file)
    assert platform.network.bandwidth(0, 1) == 1e6
    assert possibly_isolated(platform).network.bandwidth(0, 1) == 1e6
    file.write_text(f"isolated = true\n{uplink}")
    apart = load_platform(file)
    assert apart.network.bandwidth(0, 1) == 0.0
    assert [edge.tail for edge in link_graph(apart)] == [0, 2]  # site a and the hub
    with pytest.raises(BadFile, match="isolated from others"):
        write_machines(Machines(apart), tmp_path / "out.ini")


@pytest.mark.parametrize("text", ["1,2,3\n4,5,6\n", '{"a",1\n', "id,cost\n1,2\n"])
def test_a_table_without_columns(text: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(text)
    with pytest.raises(BadFile, match=r"line 1: the first line .* has no names of columns"):
        load_program(file)
