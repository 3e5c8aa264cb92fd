"""SimGrid platforms: what transfers take, compared with values computed by hand from the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.formats.loading import load_platform
from headrace.model.errors import BadFile, BadPlatform
from headrace.model.platform import Platform

HEAD = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">\n'


def platform_of(tmp_path: Path, body: str) -> Platform:
    (tmp_path / "p.xml").write_text(f"{HEAD}{body}</platform>")
    return load_platform(tmp_path / "p.xml")


def between(platform: Platform, a: str, b: str) -> tuple[float, float]:
    network, place = platform.network, platform.place_of
    return network.bandwidth(place[a], place[b]), network.latency(place[a], place[b])


FULL = """
<zone id="lab" routing="Full">
  <prop id="a" value="b"/>
  <host id="fast" speed="4Gf" core="2"><disk id="d" read_bw="1MBps" write_bw="1MBps"/></host>
  <host id="slow" speed="500Mf"/>
  <host id="far" speed="1e9"/>
  <link id="l1" bandwidth="1Gbps" latency="50us"/>
  <link id="l2" bandwidth="10MBps" latency="2ms" sharing_policy="SPLITDUPLEX"/>
  <route src="fast" dst="slow"><link_ctn id="l1"/></route>
  <route src="fast" dst="far"><link_ctn id="l1"/><link_ctn id="l2"/></route>
  <route src="slow" dst="far" symmetrical="NO"><link_ctn id="l2"/></route>
  <route src="far" dst="slow" symmetrical="NO"><link_ctn id="l1"/></route>
</zone>
"""


def test_hosts_and_routes_of_a_full_zone(tmp_path: Path) -> None:
    lab = platform_of(tmp_path, FULL)
    assert {h.name: (h.speed, h.cores) for h in lab.hosts} == {
        "fast": (4.0, 2),
        "slow": (0.5, 1),
        "far": (1.0, 1),
    }
    assert between(lab, "fast", "slow") == (125e6, pytest.approx(50e-6))
    assert between(lab, "far", "fast") == (10e6, pytest.approx(2.05e-3))
    assert between(lab, "slow", "far")[0] == 10e6
    assert between(lab, "far", "slow")[0] == 125e6
    assert (lab.name, lab.contention) == ("p", "fair")


def test_routes_may_name_one_direction_of_a_link(tmp_path: Path) -> None:
    body = FULL.replace(
        'dst="far" symmetrical="NO"><link_ctn id="l2"/>', 'dst="far" symmetrical="NO"><link_ctn id="l2_UP"/>'
    )
    body = body.replace(
        'dst="slow" symmetrical="NO"><link_ctn id="l1"/>',
        'dst="slow" symmetrical="NO"><link_ctn id="l2_DOWN"/>',
    )
    lab = platform_of(tmp_path, body)
    assert between(lab, "slow", "far") == between(lab, "far", "slow") == (10e6, pytest.approx(2e-3))
    with pytest.raises(BadPlatform, match="there is no link 'l1_UP'"):  # it is SHARED
        platform_of(
            tmp_path,
            FULL.replace('"fast" dst="slow"><link_ctn id="l1"', '"fast" dst="slow"><link_ctn id="l1_UP"'),
        )


@pytest.mark.parametrize(("symmetrical", "shared"), [(True, True), (False, False)])
def test_a_direction_that_both_ways_take_is_shared(symmetrical: bool, shared: bool, tmp_path: Path) -> None:
    routes = '<zoneRoute src="a" dst="b" gw_src="ar" gw_dst="br"><link_ctn id="wan_UP"/></zoneRoute>'
    if not symmetrical:
        one_way = routes.replace("><link_ctn", ' symmetrical="NO"><link_ctn')
        back = one_way.replace('"a"', '"x"').replace('"b"', '"a"').replace('"x"', '"b"')
        back = back.replace('gw_src="ar" gw_dst="br"', 'gw_src="br" gw_dst="ar"').replace("_UP", "_DOWN")
        routes = one_way + back
    clusters = "".join(
        f'<cluster id="{c}" prefix="{c}" suffix="" radical="0-1" speed="1Gf" bw="1MBps" lat="0" router_id="{c}r"/>'
        for c in "ab"
    )
    wan = '<link id="wan" bandwidth="1MBps" sharing_policy="SPLITDUPLEX"/>'
    (link,) = platform_of(tmp_path, f'<zone id="z" routing="Full">{clusters}{wan}{routes}</zone>').links
    assert (link.shared, link.oneway) == (shared, False)


def test_clusters_become_sites(tmp_path: Path) -> None:
    grid = platform_of(
        tmp_path,
        """
        <zone id="grid" routing="Full">
          <cluster id="a" prefix="a-" suffix=".org" radical="0-2,7" speed="2Gf" bw="125MBps" lat="50us"
                   bb_bw="2.25GBps" bb_lat="500us" core="4"/>
          <cluster id="b" prefix="b-" suffix="" radical="1" speed="1Gf" bw="1GBps" lat="10us"/>
          <link id="wan" bandwidth="10MBps" latency="5ms" sharing_policy="FATPIPE"/>
          <zoneRoute src="a" dst="b" gw_src="a-a_router.org" gw_dst="b-b_router"><link_ctn id="wan"/></zoneRoute>
        </zone>""",
    )
    assert [h.name for h in grid.hosts] == ["a-0.org", "a-1.org", "a-2.org", "a-7.org", "b-1"]
    assert between(grid, "a-0.org", "a-7.org") == (125e6, pytest.approx(600e-6))
    # The private links, the backbone of a, and the link between them.
    assert between(grid, "a-0.org", "b-1") == (10e6, pytest.approx(50e-6 + 500e-6 + 5e-3 + 10e-6))


def test_routes_go_through_gateways_of_nested_zones(tmp_path: Path) -> None:
    grid = platform_of(
        tmp_path,
        """
        <AS id="all" routing="Full">
          <AS id="left" routing="Full">
            <host id="l" power="1Gf"/><router id="lr"/><link id="ll" bandwidth="5MBps" latency="1ms"/>
            <route src="l" dst="lr"><link_ctn id="ll"/></route>
          </AS>
          <AS id="right" routing="Floyd">
            <host id="r" power="1Gf"/><host id="s" power="1Gf"/><router id="m"/>
            <link id="r1" bandwidth="7MBps" latency="3ms"/><link id="r2" bandwidth="6MBps" latency="4ms"/>
            <route src="r" dst="m"><link_ctn id="r1"/></route><route src="m" dst="s"><link_ctn id="r2"/></route>
          </AS>
          <link id="wan" bandwidth="9MBps" latency="10ms"/>
          <ASroute src="left" dst="right" gw_src="lr" gw_dst="r"><link_ctn id="wan"/></ASroute>
        </AS>""",
    )
    assert between(grid, "r", "s") == (6e6, pytest.approx(7e-3))
    assert between(grid, "l", "r") == (5e6, pytest.approx(11e-3))
    assert between(grid, "s", "l") == (5e6, pytest.approx((4 + 3 + 10 + 1) * 1e-3))


def test_traces_of_speeds(tmp_path: Path) -> None:
    (tmp_path / "slow.trace").write_text("LOOPAFTER 10\n0 1.0\n10 0.5\n")
    lab = platform_of(
        tmp_path,
        """<zone id="z" routing="Full">
          <host id="a" speed="1Gf" speed_file="slow.trace"/><host id="b" speed="1Gf"/>
          <link id="l" bandwidth="1MBps"/><route src="a" dst="b"><link_ctn id="l"/></route>
        </zone>
        <trace id="t" periodicity="0">0 1
        5 0.25</trace>
        <trace_connect trace="t" element="b" kind="SPEED"/>""",
    )
    a, b = lab.hosts
    assert a.trace is not None
    assert b.trace is not None
    assert [a.trace.at(t) for t in (5.0, 15.0, 25.0)] == [1.0, 0.5, 1.0]
    assert [b.trace.at(t) for t in (1.0, 6.0, 1e6)] == [1.0, 0.25, 0.25]


def host(attributes: str) -> str:
    return f'<zone id="z" routing="Full"><host id="h" {attributes}/></zone>'


def link(attributes: str) -> str:
    return f'<zone id="z" routing="Full"><host id="h" speed="1Gf"/><link id="l" bandwidth="1" {attributes}/></zone>'


def cluster(attributes: str) -> str:
    return (
        f'<cluster id="c" prefix="" suffix="" radical="0-1" speed="1Gf" bw="1MBps" lat="1us" {attributes}/>'
    )


@pytest.mark.parametrize(
    ("attributes", "speed", "load"),
    [
        ('speed="1Gf,2Gf,4Gf"', 1.0, 0.0),
        ('speed="1Gf,2Gf,4Gf" pstate="2"', 4.0, 0.0),
        ('speed="3Gf" pstate="0.0"', 3.0, 0.0),
        ('power="2Gf" availability="0.25" state="ON" coordinates="1 2" state_file=""', 2.0, 0.75),
    ],
)
def test_speeds_of_hosts(attributes: str, speed: float, load: float, tmp_path: Path) -> None:
    (found,) = platform_of(tmp_path, host(attributes)).hosts
    assert (found.speed, found.load) == (speed, load)


def test_attributes_of_clusters_without_effect(tmp_path: Path) -> None:
    more = (
        'loopback_bw="1GBps" loopback_lat="1us" topology="FLAT" topo_parameters="" limiter_link="" bb_bw=""'
    )
    found = platform_of(tmp_path, cluster(f'{more} sharing_policy="FULLDUPLEX"'))
    assert between(found, "0", "1") == (1e6, pytest.approx(2e-6))


def test_availability_and_a_trace_are_refused(tmp_path: Path) -> None:
    trace = '<trace id="t" periodicity="0">0 1</trace><trace_connect trace="t" element="h" kind="SPEED"/>'
    with pytest.raises(BadPlatform, match="host 'h': availability"):
        platform_of(tmp_path, host('power="2Gf" availability="0.5"') + trace)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (host('speed="1Gf,2Gf" pstate="2"'), "host 'h': pstate is '2'"),
        (host('speed="1Gf,2Gf" pstate="-1"'), "pstate is '-1'"),
        (host('speed="1Gf,fast"'), "'fast' is not a speed"),
        (host('speed="3Gflips"'), r"write it as in 500Mf, 2.5Gf or 1Tflops\)$"),
        (link('latency="3 parsec"'), r"write it as in 10s, 2ms or 50us\)$"),
        (host('speed="1Gf" availability="0"'), "availability is '0'"),
        (host('speed="1Gf" availability="1.5"'), "availability is '1.5'"),
        (host('speed="1Gf" state="OFF"'), "state 'OFF'"),
        (host('speed="1Gf" turbo="2"'), "turbo is not read"),
        (host('speed="1Gf" core="000000100000000000"'), "core is '000000100000000000'"),
        (link('state_file="x"'), "link 'l': state_file"),
        (link('state="OFF"'), "state 'OFF'"),
        (link('sharing_policy="WIFI"'), "sharing_policy 'WIFI'"),
        (cluster('limiter_link="1MBps"'), "cluster 'c': limiter_link"),
        (cluster('availability_file="x"'), "availability_file"),
        (cluster('sharing_policy="SHARED"'), "sharing_policy 'SHARED'"),
        (cluster("").replace("/>", "><cabinet/></cluster>"), "<cabinet>"),
        ('<zone id="z" routing="Vivaldi"/>', "routing 'Vivaldi'"),
        ('<zone id="z" routing="Full"><peer id="p"/></zone>', "<peer>"),
        ('<zone id="z" routing="Full"><host id="h" speed="fast"/></zone>', "not a speed"),
        ('<zone id="z" routing="Full"><host id="h"/></zone>', "no speed"),
        ('<zone id="z" routing="Full"><host id="h" speed="1Gf" state_file="x"/></zone>', "state_file"),
        ('<zone id="z" routing="Full"><host id="h" speed="1Gf" speed_file="../x"/></zone>', "outside"),
        ('<zone id="z" routing="Full"><host id="h" speed="1Gf"/><host id="g" speed="1Gf"/></zone>', "no route"),
        ('<zone id="z" routing="Full"><cluster id="c" prefix="" suffix="" radical="0-999999999" speed="1Gf" '
         'bw="1" lat="1"/></zone>', "more than"),
        ('<zone id="z" routing="Full"><host id="h" speed="1Gf"/><route src="h" dst="x"/></zone>', "no 'x'"),
        ('<zone id="z" routing="Full"><link id="l" bandwidth="0"/></zone>', "bandwidth"),
        ("", "0 zones"),
    ],
)  # fmt: skip
def test_what_is_not_read_is_named(body: str, said: str, tmp_path: Path) -> None:
    with pytest.raises((BadPlatform, BadFile), match=said) as caught:
        platform_of(tmp_path, body)
    assert "p.xml" in str(caught.value)


def test_document_types_with_declarations_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.xml").write_text('<!DOCTYPE platform [<!ENTITY a "b">]><platform version="4"/>')
    with pytest.raises(BadFile, match="document type"):
        load_platform(tmp_path / "p.xml")


@pytest.mark.parametrize(
    ("body", "version", "said"),
    [
        (
            '<cluster id="c" radical="3-1" speed="1Gf" bw="1MBps" lat="0"/>',
            "4.1",
            "radical '3-1' counts downwards",
        ),
        ('<zone id="z" routing="Full"><host id="a" speed="1Gf"/></zone>', "9", "version is '9'"),
    ],
)
def test_values_that_simgrid_does_not_know(tmp_path: Path, body: str, version: str, said: str) -> None:
    (tmp_path / "p.xml").write_text(f"{HEAD.replace('4.1', version)}{body}</platform>")
    with pytest.raises(BadPlatform, match=said) as caught:
        load_platform(tmp_path / "p.xml")
    assert str(caught.value).count("p.xml") == 1


def test_the_file_is_named_once_when_it_refers_to_another(tmp_path: Path) -> None:
    body = '<zone id="z" routing="Full"><host id="a" speed="1Gf" speed_file="../x.trace"/></zone>'
    with pytest.raises(BadFile, match="outside its folder") as caught:
        platform_of(tmp_path, body)
    assert str(caught.value).count("p.xml") == 1
