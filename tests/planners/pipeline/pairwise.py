"""The restrictions as they are written: a flow for every stream and pair of hosts. Only for small cases.

It uses the problem's own definitions and none of the planner's arrays.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.model.pipeline import MEGABYTE, PipelineProblem
from headrace.planners.pipeline.linear import Answer, Builder, solve


def solve_pairwise(problem: PipelineProblem, *, seconds: float = 60.0) -> Answer:
    """The best objective over all deployments with any source."""
    sources = problem.pipeline.sources
    answers = [
        _solve_one(replace(problem, pipeline=problem.pipeline.with_sources([s])), seconds) for s in sources
    ]
    return max(answers, key=lambda answer: answer.objective)


def _solve_one(problem: PipelineProblem, seconds: float) -> Answer:
    """The best objective with the only source."""
    b = Builder()
    order = [f.name for f in problem.pipeline.order]
    hosts = [h.name for h in problem.platform.hosts]
    n, n_filters, sources, knobs = len(hosts), len(order), problem.sources, problem.knobs
    read_volume = problem.pipeline.reader.volume
    rho = [v / read_volume for v in problem.pipeline.volumes]
    readable = [problem.readable(s) for s in sources]
    most = max(readable)
    share = [[s.shares.get(h, 0.0) for h in hosts] for s in sources]
    cores = [problem.hosts[h].cores for h in hosts]
    capacity = [[problem.capacity(f, h) for h in hosts] for f in order]

    op = b.add_columns((len(sources),), high=1.0, whole=True)
    lam = b.add_columns((len(sources),))
    host_cost = knobs.host_cost
    x = b.add_columns(
        (n_filters, n), high=1.0, cost=0.0 if problem.several_per_host else -host_cost, whole=True
    )
    used = b.add_columns((n,), high=1.0, cost=-host_cost if problem.several_per_host else 0.0, whole=True)
    done = b.add_columns((n_filters, n))
    cluster = [problem.cluster[h] for h in hosts]
    weight = np.array([[knobs.weight(p, c) for c in cluster] for p in cluster])
    vf = b.add_columns((len(rho), n, n), cost=np.broadcast_to(weight, (len(rho), n, n)))

    b.put(b.add_rows(1, low=1, high=1), op, 1.0)  # 4
    for h in range(n):  # 5
        row = b.add_rows(1, low=0, high=0)
        b.put(row, x[0, h], 1.0)
        for i in range(len(sources)):
            b.put(row, op[i], -float(share[i][h] > 0))
    for i in range(len(sources)):  # 5'
        row = b.add_rows(1, high=0)
        b.put(row, lam[i], 1.0)
        b.put(row, op[i], -readable[i])
    for h in range(n):  # what the reader does
        row = b.add_rows(1, low=0, high=0)
        b.put(row, done[0, h], 1.0)
        for i in range(len(sources)):
            b.put(row, lam[i], -share[i][h])
    for e, stream in enumerate(problem.pipeline.streams):  # 6, 9
        a, c = order.index(stream.source), order.index(stream.target)
        for h in range(n):
            row = b.add_rows(1, low=0, high=0)
            b.put(row, vf[e, h], 1.0)
            b.put(row, done[a, h], -rho[e])
            row = b.add_rows(1, low=0, high=0)
            b.put(row, vf[e, :, h], 1.0)
            b.put(row, done[c, h], -rho[e])
    for k in range(1, n_filters):
        row = b.add_rows(1, low=0, high=0)
        b.put(row, done[k], 1.0)
        b.put(row, lam, -1.0)
        b.put(b.add_rows(1, low=1), x[k], 1.0)  # 7
        for h in range(n):  # 10, 13
            row = b.add_rows(1, high=0)
            b.put(row, done[k, h], 1.0)
            b.put(row, x[k, h], -min(capacity[k][h] * cores[h], most))
        if not problem.several_per_host:  # 11
            enough = 10 * (1 + knobs.spare) * most
            row = b.add_rows(1, low=0)
            b.put(row, x[k], [min(capacity[k][h] * cores[h], enough) for h in range(n)])
            b.put(row, lam, -(1 + knobs.spare))
        least = knobs.least_share(order[k])  # 14
        if least > 0:
            only = b.add_columns((1,), high=1.0, whole=True)
            row = b.add_rows(1, high=n)
            b.put(row, x[k], 1.0)
            b.put(row, only, n - 1)
            for h in range(n):
                must = least * min(capacity[k][h] * cores[h], most)
                row = b.add_rows(1, low=0)
                b.put(row, done[k, h], 1.0)
                b.put(row, x[k, h], -must)
                b.put(row, only, must)
    for h in range(n):  # 15
        row = b.add_rows(1, high=1 if not problem.several_per_host else n_filters)
        b.put(row, x[:, h], 1.0)
        if problem.several_per_host:
            for k in range(n_filters):
                row = b.add_rows(1, low=0)
                b.put(row, used[h], 1.0)
                b.put(row, x[k, h], -1.0)
            spare = 1 + knobs.spare
            row = b.add_rows(1, high=0)
            b.put(row, used[h], -cores[h])
            for k in range(n_filters):
                if np.isfinite(capacity[k][h]):
                    b.put(row, done[k, h], (spare if k else 1.0) / capacity[k][h])
    _network(b, problem, vf)
    return solve(b.build(), seconds=seconds, gap=1e-9)


def _network(b: Builder, problem: PipelineProblem, vf: np.ndarray) -> None:
    """12, and no flow without a route."""
    network, cluster = problem.platform.network, problem.cluster
    hosts = [h.name for h in problem.platform.hosts]
    rows = b.add_rows(network.n_links, high=network.link_bandwidth / MEGABYTE)
    segments = {s: b.add_rows(1, high=v / MEGABYTE)[0] for s, v in problem.segments.items()}
    for p, sender in enumerate(hosts):
        for c, receiver in enumerate(hosts):
            if p == c:
                continue
            for site in {cluster[sender], cluster[receiver]} & segments.keys():
                b.put(segments[site], vf[:, p, c], 1.0)
            at, to = int(network.host_place[p]), int(network.host_place[c])
            if at == to:
                continue
            if network.bandwidth(at, to) == 0:
                b.put(b.add_rows(1, high=0), vf[:, p, c], 1.0)
            for link in network.route(at, to):
                b.put(rows[link], vf[:, p, c], 1.0)
