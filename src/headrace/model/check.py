"""Check a plan against every rule, using only the definitions of program, platform and network.

The check shares no code with planners or simulators, so their bugs cannot hide here.
"""

from __future__ import annotations

import numpy as np

from headrace.model.check_case import ABSOLUTE, RELATIVE, Findings, Violation
from headrace.model.check_data import check_inputs, check_results, check_sources, check_storage, find_copies
from headrace.model.check_needs import check_needs
from headrace.model.check_tasks import (
    check_bound,
    check_cores,
    check_durations,
    check_shapes,
    check_windows,
    usable,
)
from headrace.model.check_transfers import check_transfers
from headrace.model.errors import BadPlan
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform
from headrace.model.program import Program

__all__ = ["ABSOLUTE", "RELATIVE", "Violation", "check", "require_valid"]


def check(graph: Graph | Program, platform: Platform, plan: Plan, *, limit: int = 1000) -> list[Violation]:
    """List every rule violation of a plan; an empty list means that the plan is valid.

    After `limit` violations, one more entry gives the number omitted. Overlaps are reported once for
    each task or transfer that starts too early, not for every pair.

    O(x log x) array operations, x = tasks + reads + links used by transfers. Fair contention is
    recomputed by an event loop, O(transfers * concurrent transfers that share links).

    >>> from headrace.model.graph import make_graph
    >>> from headrace.model.plan import NO_MOVES
    >>> g = make_graph(work=[4.0], size=[], producer=[], read_ptr=[0, 0], reads=[])
    >>> lab = Platform.pairwise([2.0], bandwidth=1e6)
    >>> zero = np.zeros(1, np.int32)
    >>> def on_h0(finish):
    ...     return Plan(g, lab, "mine", zero, zero, np.zeros(1), np.array([finish]), **NO_MOVES)
    >>> check(g, lab, on_h0(2.0))
    []
    >>> [v.rule for v in check(g, lab, on_h0(1.5))]
    ['duration']
    """
    findings = _judge(graph, platform, plan, limit)
    if findings.total <= len(findings.found):
        return findings.found
    left_out = findings.total - len(findings.found)
    return [*findings.found, Violation("more", f"{left_out} more violations, {findings.total} in all")]


def require_valid(graph: Graph | Program, platform: Platform, plan: Plan) -> None:
    """Raise BadPlan, with the number of violations and the first three, unless the plan is valid."""
    findings = _judge(graph, platform, plan, limit=3)
    if findings.total:
        raise BadPlan(
            f"{findings.total} violation{'s' * (findings.total > 1)}: {'; '.join(str(v) for v in findings.found)}",
            where=f"plan by {plan.scheduler!r}",
            hint="plan again for this program and this platform",
        )


def _judge(graph: Graph | Program, platform: Platform, plan: Plan, limit: int) -> Findings:
    if isinstance(graph, Program):
        graph = graph.graph
    findings = Findings(limit)
    check_shapes(graph, plan, findings)
    if findings.total:
        return findings
    with np.errstate(invalid="ignore"):  # non-finite times are reported, then ignored
        case = usable(graph, platform, plan, findings)
        check_durations(case, findings)
        check_cores(case, findings)
        check_needs(case, findings)
        check_windows(case, findings)
        copies = find_copies(case, findings)
        check_inputs(case, copies, findings)
        check_sources(case, copies, findings)
        check_transfers(case, findings)
        check_storage(case, copies, findings)
        check_results(case, copies, findings)
        check_bound(case, findings)
    return findings
