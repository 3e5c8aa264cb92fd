"""Deployments in virtual time: do promises come true, what does dealing out in turn lose, how long does it take.

python -m bench.flow
"""

from __future__ import annotations

import numpy as np

from bench.generated.flows import flow_case
from bench.generated.pipelines import mixed_machines
from bench.tools import geometric_mean, print_rows
from headrace.planners.pipeline.plan import deploy_lpsched
from headrace.simulator.pipeline.flow import simulate_deployment

CASES = 50
SIZES = ((1_000, 12, 12), (10_000, 40, 24))


def agreement() -> None:
    """Simulated over planned throughput of seeded cases; in turn only where a host runs one filter.

    On shared hosts cores are parted as planned, which would count against other ways of routing.
    """
    plans = [deploy_lpsched(flow_case(seed), gap=0.01) for seed in range(CASES)]
    alone = [plan for plan in plans if not plan.problem.several_per_host]
    rows = []
    for routing, chosen in (("planned", plans), ("round-robin", alone)):
        shares = np.array([simulate_deployment(plan, routing).of_planned for plan in chosen])
        within = int(np.sum(np.abs(shares - 1) <= 0.05))
        rows.append(
            [routing, len(chosen), float(shares.min()), geometric_mean(shares), float(shares.max()), within]
        )
    print_rows(["routing", "cases", "least", "geometric mean", "most", "within 5 %"], rows)


def scale() -> None:
    """Many hosts: events, seconds, and the same shares."""
    rows = []
    for hosts, clusters, kinds in SIZES:
        plan = deploy_lpsched(mixed_machines(hosts, clusters, kinds), seconds=20.0, gap=0.01)
        for routing in ("planned", "round-robin"):
            happened = simulate_deployment(plan, routing)
            rows.append(
                [
                    f"{hosts:,}",
                    len(plan.hosts_used),
                    routing,
                    happened.of_planned,
                    f"{happened.events:,}",
                    happened.seconds,
                ]
            )
    print_rows(["hosts", "used", "routing", "of planned", "events", "seconds"], rows)


def main() -> None:
    agreement()
    scale()


if __name__ == "__main__":
    main()
