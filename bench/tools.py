"""What the benchmarks share: best of several, tables, and where the instances are."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from headrace.model.graph import Graph, make_graph
from headrace.model.platform import Platform

T = TypeVar("T")
DATA = Path(os.environ.get("HEADRACE_DATA", Path(__file__).parents[2] / "shared" / "data"))


def best_of(times: int, action: Callable[[], T]) -> tuple[float, T]:
    """The least wall seconds of several runs, and what the last one returned; one run before warms up."""
    result = action()
    best = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        result = action()
        best = min(best, time.perf_counter() - began)
    return best, result


def print_rows(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A Markdown table."""
    print("| " + " | ".join(headers) + " |")
    print("|" + " --- |" * len(headers))
    for row in rows:
        print("| " + " | ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row) + " |")
    print(flush=True)


def geometric_mean(values: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


def instances() -> list[Path]:
    """The workflow instances, real ones first."""
    folder = DATA / "wfinstances"
    if not folder.is_dir():
        raise SystemExit(
            f"no instances under {folder}: set HEADRACE_DATA to the folder that holds wfinstances/"
        )
    return [*sorted(folder.glob("*.json.gz")), *sorted(folder.glob("synthetic/*.json.gz"))]


def read_dag(tasks: int) -> Graph:
    """A seeded layered graph: cost and edges with sizes."""
    dag = json.loads(gzip.decompress((DATA / "dags" / f"dag-square-n{tasks}.json.gz").read_bytes()))
    edges = sorted(dag["edges"], key=lambda edge: edge[1])
    counts = np.bincount([edge[1] for edge in edges], minlength=dag["n"])
    return make_graph(
        work=dag["cost"],
        size=[edge[2] for edge in edges],
        producer=[edge[0] for edge in edges],
        read_ptr=np.concatenate(([0], np.cumsum(counts))),
        reads=np.arange(len(edges)),
    )


def read_network(name: str) -> Platform:
    """A seeded network: a speed for each host, a bandwidth for each pair."""
    net = json.loads(gzip.decompress((DATA / "dags" / f"net-{name}.json.gz").read_bytes()))
    bandwidth = np.ones((net["h"], net["h"]))
    for i, row in enumerate(net["bw"]):
        bandwidth[i, i + 1 :] = row
        bandwidth[i + 1 :, i] = row
    return Platform.pairwise(net["speed"], bandwidth)
