"""Isolated sites, and tables without names of columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.formats.loading import load_machines, load_platform, load_program
from headrace.formats.platform_toml import write_platform
from headrace.model.errors import BadFile, BadPlatform

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


@pytest.mark.parametrize("text", ["1,2,3\n4,5,6\n", '{"a",1\n', "id,cost\n1,2\n"])
def test_a_table_without_columns(text: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(text)
    with pytest.raises(BadFile, match=r"line 1: the first line .* has no names of columns"):
        load_program(file)
