"""Plan checks: memory and named resources of hosts, from the program's and the platform's own words alone."""

from __future__ import annotations

import math

import numpy as np

from headrace.model.check_case import EXCESS, Case, Findings, Numbers, slack
from headrace.model.graph import Floats
from headrace.model.units import show_size


def check_needs(case: Case, findings: Findings) -> None:
    """At no moment do the tasks that run on a host need more memory, or more of a resource, than it has."""
    for column, name in enumerate(case.graph.needs.names):
        needed = case.graph.needs.amount[:, column]
        rule = "memory" if name == "memory" else "resource"
        for number, host in enumerate(case.platform.hosts):
            has = host.memory if name == "memory" else float(host.resources.get(name, 0))
            here = np.flatnonzero(case.task_ok & (case.plan.host == number) & (needed > 0))
            if math.isfinite(has) and len(here):
                _check_host(case, findings, rule, name, needed, here, has)


def _check_host(
    case: Case, findings: Findings, rule: str, name: str, needed: Floats, here: Numbers, has: float
) -> None:
    """One sweep over starts and ends; a task that does not fit alone is reported whatever its duration."""
    plan = case.plan
    most = has * (1 + EXCESS)
    alone = here[needed[here] > most]
    findings.add(
        rule,
        alone,
        lambda t: f"{case.task(t)}: needs {_show(name, needed[t])}, the host has {_show(name, has)} in all",
    )
    here = here[needed[here] <= most]
    finish = plan.finish[here] - slack(plan.finish[here])
    lasts = finish > plan.start[here]
    here, finish = here[lasts], finish[lasts]
    moment = np.concatenate((finish, plan.start[here]))
    change = np.concatenate((-needed[here], needed[here]))
    order = np.argsort(moment, kind="stable")
    in_use = np.cumsum(change[order])
    late = np.flatnonzero((in_use > most) & (order >= len(here)))
    used = {int(here[order[k] - len(here)]): float(in_use[k]) for k in late.tolist()}
    findings.add(
        rule,
        np.array(list(used), np.int64),
        lambda t: (
            f"{case.task(t)}: needs {_show(name, needed[t])}, but with the tasks that run there at "
            f"{float(plan.start[t])!r} that makes {_show(name, used[t])}, and the host has {_show(name, has)}"
        ),
    )


def _show(name: str, amount: float) -> str:
    return f"{show_size(amount)} of memory" if name == "memory" else f"{amount:g} of {name!r}"
