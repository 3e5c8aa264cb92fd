"""Programs and platforms of the corpus as plain data: seeded, and independent of every API of the program."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Spec: TypeAlias = dict[str, Any]
Rng: TypeAlias = np.random.Generator

TESTS = Path(__file__).parents[1]
SHARED = Path(os.environ.get("HEADRACE_DATA", Path(__file__).parents[3] / "shared" / "data"))
"""Files too large to be kept here; cases that need them are skipped where they are absent."""
FORMATS = TESTS / "formats" / "data"
KINDS = ("", "cut", "filter", "stitch")


def program(seed: int, tasks: int, shape: str, **features: bool) -> Spec:
    """A program; `cores` and `release` give some tasks several cores or a release time, `sites` inputs at sites."""
    rng = np.random.default_rng([seed, 101])
    inputs = {f"in{i}": _size(rng) for i in range(int(rng.integers(1, 4)))}
    rows: list[Spec] = []
    for t, before in enumerate(_predecessors(rng, tasks, shape)):
        reads = [f"d{p}.0" for p in before]
        if not before or rng.random() < 0.2:
            reads.append(f"in{int(rng.integers(len(inputs)))}")
        row: Spec = {
            "name": f"t{t}",
            "inputs": reads,
            "outputs": {f"d{t}.{i}": _size(rng) for i in range(1 if rng.random() < 0.7 else 2)},
            "kind": KINDS[int(rng.integers(len(KINDS)))],
            "work": 0.0 if rng.random() < 0.05 else float(rng.uniform(0.5, 20.0)),
        }
        if features.get("cores"):
            row["cores"] = int(rng.integers(1, 3))
        if features.get("release") and rng.random() < 0.4:
            row["release"] = float(rng.uniform(1.0, 20.0))
        rows.append(row)
    return {"name": f"{shape}-{tasks}-{seed}", "inputs": inputs, "tasks": rows}


def sweep(seed: int, tasks: int, files: int, *, shared: float = 1.2e6) -> Spec:
    """Independent tasks in groups that each read one shared file, with private inputs and outputs."""
    rng = np.random.default_rng([seed, 102])
    inputs = {f"shared{f}": float(shared * rng.uniform(0.5, 1.5)) for f in range(files)}
    rows = []
    for t in range(tasks):
        inputs[f"own{t}"] = float(rng.uniform(8e3, 12e3))
        rows.append(
            {
                "name": f"t{t}",
                "inputs": [f"shared{t * files // tasks}", f"own{t}"],
                "outputs": {f"out{t}": float(rng.uniform(8e3, 12e3))},
                "work": float(rng.uniform(90.0, 110.0)),
            }
        )
    return {"name": f"sweep-{tasks}-{seed}", "inputs": inputs, "tasks": rows}


def jobs(seed: int, count: int, sites: int) -> Spec:
    """Independent jobs whose inputs lie at some sites and whose results go to others."""
    rng = np.random.default_rng([seed, 103])
    inputs, at, rows, to = {}, {}, [], {}
    for k in range(count):
        inputs[f"in{k}"] = float(rng.uniform(2, 20))
        at[f"in{k}"] = sorted({f"s{int(s)}" for s in rng.integers(0, sites, 2)})
        rows.append(
            {
                "name": f"j{k}",
                "inputs": [f"in{k}"],
                "outputs": {f"out{k}": float(rng.uniform(2, 20))},
                "work": float(rng.uniform(20, 90)),
            }
        )
        to[f"out{k}"] = [f"s{int(rng.integers(sites))}"]
    return {"name": f"jobs-{count}-{seed}", "inputs": inputs, "at": at, "tasks": rows, "to": to}


def job_grid(seed: int, sites: int) -> Spec:
    """Sites (the first only stores) with one-way links between neighbours and some short cuts."""
    rng = np.random.default_rng([seed, 104])
    rows = []
    for s in range(sites):
        host = {"name": f"p{s}", "cores": int(rng.integers(2, 6)), "speed": float(rng.uniform(0.5, 2.0))}
        rows.append({"name": f"s{s}", "hosts": [host] if s else []})
    ways = {(s, (s + 1) % sites) for s in range(sites)} | {((s + 1) % sites, s) for s in range(sites)}
    ways |= {(0, sites // 2), (sites - 1, 1)} if sites > 3 else set()
    links = [
        {"from": f"s{a}", "to": f"s{b}", "bandwidth": float(rng.uniform(0.5, 2.0)), "oneway": True}
        for a, b in sorted(ways)
    ]
    return {"name": "grid", "sites": rows, "links": links, "contention": "fifo", "routing": "links"}


def platform(
    seed: int,
    network: str,
    contention: str,
    *,
    hosts: int = 5,
    origin: str = "none",
    storage: float | None = None,
    traces: bool = False,
) -> Spec:
    """A platform: pairs, shared-site, ports, uplinks (some sites with own disks) or sites (a graph)."""
    rng = np.random.default_rng([seed, 105])
    machines = [_host(rng, f"h{i}", traces) for i in range(hosts)]
    made: Spec = {"name": f"{network}-{contention}-{seed}", "contention": contention}
    count = 3 if network in ("uplinks", "sites") else 1
    made["sites"] = []
    for s in range(count):
        site: Spec = {"name": f"s{s}", "hosts": machines[s::count]}
        if network == "ports" or (count > 1 and s % 2 == 0):
            site["bandwidth"] = _bandwidth(rng)
        if network != "pairs":
            site["latency"] = _latency(rng)
        if network == "uplinks":
            site["uplink"], site["uplink_latency"] = _bandwidth(rng), _latency(rng)
            if traces:
                site["uplink_trace"] = [_trace(rng, site["uplink"]), _trace(rng, 0.1)]
        if storage is not None:
            site["storage"] = storage
        made["sites"].append(site)
    if network == "pairs":
        made["pairs"] = {"bandwidth": (10 ** rng.uniform(5, 7, (hosts, hosts))).tolist(), "latency": 0.05}
    if network == "sites":
        made["sites"].append({"name": "relay", "hosts": []})
        made["links"] = [_link(rng, f"s{s}", "relay", shared=s == 1) for s in range(count)]
        made["links"].append(_link(rng, "s0", "s1", oneway=True))
    if origin == "host":
        made["origin"] = f"h{int(rng.integers(hosts))}"
    elif origin == "site" and network != "pairs":
        made["origin"] = "store"
        made["sites"].append({"name": "store", "hosts": []})
        if network != "uplinks":
            made.setdefault("links", []).append(_link(rng, "s0", "store"))
    return made


def lab(contention: str, *, own_disks: bool = True, cores: int = 2) -> Spec:
    """Two unequal sites behind uplinks; inputs lie at the first host."""
    sites: list[Spec] = []
    for name, speeds, port, uplink in (
        ("uw", (2.0, 1.0, 1.0, 1.0), 125e6, 12.5e6),
        ("ufmg", (3.0, 0.5, 0.5), 12.5e6, 6e6),
    ):
        site: Spec = {"name": name, "uplink": uplink, "uplink_latency": 0.02}
        site["hosts"] = [
            {"name": f"{name}{i}", "speed": s, "cores": cores, "load": 0.1 * (i == 1)}
            for i, s in enumerate(speeds)
        ]
        if own_disks:
            site |= {"bandwidth": port, "latency": 2e-4}
        sites.append(site)
    return {"name": f"lab-{contention}", "contention": contention, "sites": sites, "origin": "uw0"}


def clusters(contention: str = "fifo", *, traces: bool = False, seed: int = 0) -> Spec:
    """Three clusters with common storage behind uplinks to a store: where sweeps run."""
    rng = np.random.default_rng([seed, 106])
    sites: list[Spec] = []
    for c, (hosts, share) in enumerate(((2, 1.0), (3, 0.7), (5, 0.3))):
        machines: list[Spec] = [{"name": f"c{c}h{i}", "load": 1.0 - share} for i in range(hosts)]
        if traces:
            for machine in machines:
                machine["trace"] = _trace(rng, share)
        sites.append({"name": f"c{c}", "hosts": machines, "uplink": 2e4})
    sites.append({"name": "origin", "hosts": []})
    return {"name": f"clusters-{contention}", "contention": contention, "sites": sites, "origin": "origin"}


def recorded_graph(name: str) -> Spec | None:
    """A task graph of the shared data with an item for each edge; None where the file is absent."""
    path = next((p for p in (TESTS / "data" / name, SHARED / "dags" / name) if p.exists()), None)
    if path is None:
        return None
    dag = json.loads(gzip.decompress(path.read_bytes()))
    reads: list[list[str]] = [[] for _ in dag["cost"]]
    writes: list[dict[str, float]] = [{} for _ in dag["cost"]]
    for k, (a, b, size) in enumerate(sorted(dag["edges"], key=lambda e: e[1])):
        writes[a][f"e{k}"] = float(size)
        reads[b].append(f"e{k}")
    rows = [
        {"name": f"t{t}", "inputs": reads[t], "outputs": writes[t], "work": float(cost)}
        for t, cost in enumerate(dag["cost"])
    ]
    return {"name": name.split(".")[0], "inputs": {}, "tasks": rows}


def recorded_net(name: str) -> Spec | None:
    """The pairwise network that goes with these graphs."""
    path = next((p for p in (TESTS / "data" / name, SHARED / "dags" / name) if p.exists()), None)
    if path is None:
        return None
    net = json.loads(gzip.decompress(path.read_bytes()))
    bandwidth = np.ones((net["h"], net["h"]))
    for i, row in enumerate(net["bw"]):
        bandwidth[i, i + 1 :] = row
        bandwidth[i + 1 :, i] = row
    hosts = [{"name": f"h{i}", "speed": float(s)} for i, s in enumerate(net["speed"])]
    pairs = {"bandwidth": bandwidth.tolist(), "latency": 0.0}
    return {
        "name": name.split(".")[0],
        "contention": "none",
        "sites": [{"name": "all", "hosts": hosts}],
        "pairs": pairs,
    }


def workflow(name: str) -> Spec | None:
    """A WfFormat file: one of the tests' own, or of the shared data; None where it is absent."""
    path = next((p for p in (FORMATS / name, SHARED / "wfinstances" / name) if p.exists()), None)
    return None if path is None else {"file": str(path)}


def _predecessors(rng: Rng, tasks: int, shape: str) -> list[list[int]]:
    if shape == "sweep":
        return [[] for _ in range(tasks)]
    if shape == "chain":
        return [[t - 1] if t else [] for t in range(tasks)]
    if shape == "random":
        return [_some(rng, range(t)) if rng.random() < 0.9 else [] for t in range(tasks)]
    before: list[list[int]] = []
    layer = range(0)
    while len(before) < tasks:
        wide = shape == "layered" or len(layer) == 1
        width = min(int(rng.integers(2, 6)) if wide else 1, tasks - len(before))
        join = shape == "fork-join" and width == 1
        before.extend(list(layer) if join else _some(rng, layer) for _ in range(width))
        layer = range(len(before) - width, len(before))
    return before


def _some(rng: Rng, among: range) -> list[int]:
    count = min(len(among), int(rng.integers(1, 4)))
    return sorted(rng.choice(np.array(among), size=count, replace=False).tolist()) if count else []


def _size(rng: Rng) -> float:
    return 0.0 if rng.random() < 0.05 else float(np.round(10 ** rng.uniform(3, 7)))


def _latency(rng: Rng) -> float:
    return float(rng.uniform(1e-3, 0.2))


def _bandwidth(rng: Rng) -> float:
    return float(10 ** rng.uniform(5, 7))


def _host(rng: Rng, name: str, traces: bool) -> Spec:
    host: Spec = {"name": name, "speed": float(rng.uniform(0.5, 4.0)), "cores": int(rng.integers(1, 4))}
    if rng.random() < 0.3:
        host["kinds"] = {"cut": float(rng.uniform(0.5, 6.0))}
    if rng.random() < 0.3:
        host["load"] = float(rng.uniform(0.05, 0.6))
    if traces:
        host["trace"] = _trace(rng, 1.0)
    return host


def _link(rng: Rng, source: str, target: str, **how: bool) -> Spec:
    return {"from": source, "to": target, "bandwidth": _bandwidth(rng), "latency": _latency(rng), **how}


def _trace(rng: Rng, peak: float) -> Spec:
    """Steps between a fifth of the peak and the peak, repeated for ever."""
    steps = int(rng.integers(2, 6))
    time = np.concatenate(([0.0], np.cumsum(rng.uniform(2.0, 30.0, steps - 1))))
    value = rng.uniform(0.2, 1.0, steps) * peak
    return {"time": time.tolist(), "value": value.tolist(), "length": float(time[-1] + 10.0)}
