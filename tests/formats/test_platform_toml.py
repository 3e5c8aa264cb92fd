"""Platform files: what they mean, and round trips."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from formats.strategies import platforms
from headrace.formats.platform_toml import read_platform, write_platform
from headrace.model.errors import BadPlatform
from headrace.model.platform import Host, Link, Pairs, Platform, Site

LAB = """
name = "lab"
contention = "fifo"
origin = "store"
[[site]]
name = "uw"
bandwidth = "100 Mbit/s"
latency = "0.2 ms"
uplink = "10 Mbit/s"
storage = "2 TB"
[[site.host]]
name = "oddvar"
speed = 2.0
cores = 4
memory = "8 GB"
[[site.host]]
name = "n"
count = 2
kinds = { fft = 3 }
load = 0.1
[[site]]
name = "store"
[[link]]
from = "uw"
to = "store"
bandwidth = 1_250_000
latency = "80 ms"
shared = true
oneway = true
"""


def read(tmp_path: Path, text: str) -> Platform:
    path = tmp_path / "some.toml"
    path.write_text(text)
    return read_platform(path)


def test_sites_hosts_and_links(tmp_path: Path) -> None:
    lab = read(tmp_path, LAB)
    uw, store = lab.sites
    assert (lab.name, lab.contention, lab.origin) == ("lab", "fifo", "store")
    assert uw.hosts == (
        Host("oddvar", 2.0, 4, memory=8e9),
        Host("n1", kinds={"fft": 3.0}, load=0.1),
        Host("n2", kinds={"fft": 3.0}, load=0.1),
    )
    assert (uw.bandwidth, uw.latency, uw.uplink, uw.storage) == (12.5e6, 0.0002, 1.25e6, 2e12)
    assert store == Site("store")
    assert lab.links == (Link("uw", "store", 1.25e6, 0.08, shared=True, oneway=True),)


def test_hosts_alone_share_a_file_system(tmp_path: Path) -> None:
    some = read(tmp_path, '[[host]]\nname = "a"\n[[host]]\nname = "some"\n')
    assert some.name == "some"
    assert some.network.host_place.tolist() == [0, 0]
    assert some.sites[0].name == "some-site"  # a host has the platform's name


def test_pairs(tmp_path: Path) -> None:
    text = '[[host]]\nname = "h"\ncount = 3\n[pairs]\nbandwidth = {}\nlatency = "5 ms"\n'
    one = read(tmp_path, text.format('"1 MB/s"'))
    assert one.network.bandwidth(0, 2) == 1e6
    assert one.network.latency(0, 2) == 0.005
    many = read(tmp_path, text.format('[[0, 1, 2], ["3 kB/s", 0, 4], [5, 6, 0]]'))
    assert many.network.route_bandwidth.tolist() == [
        [math.inf, 1, 2],
        [3000, math.inf, 4],
        [5, 6, math.inf],
    ]


def test_limits_are_inclusive(tmp_path: Path) -> None:
    text = '[[host]]\nname = "h"\ncount = {}\n[pairs]\nbandwidth = 1\n'
    assert len(read(tmp_path, text.format(300)).hosts) == 300
    with pytest.raises(BadPlatform, match="count = 2001 makes 2001 hosts"):
        read(tmp_path, text.format(2001))


def same(a: Platform, b: Platform) -> None:
    assert (a.sites, a.links, a.contention, a.origin, a.name) == (
        b.sites,
        b.links,
        b.contention,
        b.origin,
        b.name,
    )
    assert (a.pairs is None) == (b.pairs is None)
    if a.pairs is not None and b.pairs is not None:
        off = ~np.eye(len(a.hosts), dtype=bool)
        assert np.array_equal(a.pairs.bandwidth[off], b.pairs.bandwidth[off])
        assert np.array_equal(np.asarray(a.pairs.latency), np.asarray(b.pairs.latency))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(platform=platforms())
def test_platforms_survive_a_round_trip(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("toml") / "p.toml"
    write_platform(platform, path)
    same(read_platform(path), platform)


def test_names_that_need_escapes(tmp_path: Path) -> None:
    platform = Platform((Site('a"\\\n\x7f\x00', (Host("[[host]] # é", kinds={'k"': 2.0}),)),), name="= 'x'")
    write_platform(platform, tmp_path / "p.toml")
    same(read_platform(tmp_path / "p.toml"), platform)


def test_infinite_bandwidth_cannot_be_written(tmp_path: Path) -> None:
    pairs = Pairs(np.full((2, 2), math.inf))
    with pytest.raises(BadPlatform, match="bandwidth is inf"):
        write_platform(Platform((Site("s", (Host("a"), Host("b"))),), pairs=pairs), tmp_path / "p.toml")
    assert list(tmp_path.iterdir()) == []
