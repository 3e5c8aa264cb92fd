"""Plan checks: individual values, task durations, and cores."""

from __future__ import annotations

import math

import numpy as np

from headrace.model.check_case import EXCESS, Case, Findings, differs, makespan_of, overlaps, slack
from headrace.model.check_transfers import bandwidths
from headrace.model.graph import Graph
from headrace.model.plan import Plan
from headrace.model.platform import Platform


def check_shapes(graph: Graph, plan: Plan, findings: Findings) -> None:
    """Arrays have the right length and type, so every task is in the plan exactly once."""
    moves = np.shape(plan.move_item)
    count = moves[0] if len(moves) == 1 else 0
    wanted = dict.fromkeys(("host", "core", "start", "finish"), graph.n_tasks)
    wanted |= dict.fromkeys(("move_item", "move_source", "move_target", "move_start", "move_finish"), count)
    whole = ("host", "core", "move_item", "move_source", "move_target")
    for name, length in wanted.items():
        array = np.asarray(getattr(plan, name))
        if array.shape != (length,):
            findings.say("shape", f"{name} has shape {array.shape}, it should be ({length},)")
        elif array.dtype.kind not in ("iu" if name in whole else "iuf"):
            findings.say("shape", f"{name} has the wrong dtype {array.dtype}")


def usable(graph: Graph, platform: Platform, plan: Plan, findings: Findings) -> Case:
    """Check every value on its own; entries with an invalid one are excluded from the checks that need it."""
    network, hosts = platform.network, platform.hosts
    host_ok = (plan.host >= 0) & (plan.host < len(hosts))
    host = np.where(host_ok, plan.host, 0)
    cores = np.array([h.cores for h in hosts])
    core_ok = host_ok & (plan.core >= 0) & (plan.core < cores[host])
    times_ok = np.isfinite(plan.start) & np.isfinite(plan.finish)
    ends_ok = (plan.move_source != plan.move_target) & np.logical_and.reduce(
        [(end >= 0) & (end < network.n_places) for end in (plan.move_source, plan.move_target)]
    )
    item_ok = (plan.move_item >= 0) & (plan.move_item < graph.n_items)
    source, target = np.where(ends_ok, plan.move_source, 0), np.where(ends_ok, plan.move_target, 0)
    route_ok = bandwidths(network, source, target) > 0
    move_times_ok = np.isfinite(plan.move_start) & np.isfinite(plan.move_finish)
    size = np.zeros(len(item_ok))
    size[item_ok] = graph.size[plan.move_item[item_ok]]
    task_ok = host_ok & times_ok
    maker_ok = graph.producer < 0
    maker_ok[~maker_ok] = task_ok[graph.producer[~maker_ok]]
    case = Case(
        graph=graph,
        platform=platform,
        network=network,
        plan=plan,
        task_ok=task_ok,
        core_ok=core_ok & times_ok,
        place=network.host_place[host].astype(np.int64),
        move_ok=ends_ok & item_ok & route_ok & move_times_ok,
        move_size=size,
        maker_ok=maker_ok,
        reader=np.repeat(np.arange(graph.n_tasks), np.diff(graph.read_ptr)),
        home_place=graph.initial_locations.places(graph, platform),
        goal_place=graph.destinations.places(graph, platform),
    )
    findings.add("host", ~host_ok, lambda t: f"{case.task(t)}: hosts are numbered 0 to {len(hosts) - 1}")
    findings.add(
        "core",
        host_ok & ~core_ok,
        lambda t: f"{case.task(t)}: its cores are 0 to {cores[host[t]] - 1}",
    )
    findings.add("finite", ~times_ok, lambda t: f"{case.task(t)}: a time is not finite")
    findings.add("start", times_ok & (plan.start < 0), lambda t: f"{case.task(t)}: starts before 0")
    findings.add("item", ~item_ok, lambda k: f"{case.move(k)}: items are numbered 0 to {graph.n_items - 1}")
    findings.add("place", ~ends_ok, lambda k: f"{case.move(k)}: needs two different existing places")
    findings.add(
        "route", ends_ok & ~route_ok, lambda k: f"{case.move(k)}: there is no route between these places"
    )
    findings.add("finite", ~move_times_ok, lambda k: f"{case.move(k)}: a time is not finite")
    findings.add("start", move_times_ok & (plan.move_start < 0), lambda k: f"{case.move(k)}: starts before 0")
    return case


def check_bound(case: Case, findings: Findings) -> None:
    """A proven lower bound cannot exceed the plan's makespan."""
    plan = case.plan
    for name, value in (("bound", plan.bound), ("seconds", plan.seconds)):
        if not math.isfinite(value):
            findings.say("finite", f"{name} is {value!r}")
    makespan = makespan_of(case)
    if math.isfinite(plan.bound) and plan.bound > 0 and plan.bound > makespan * (1 + EXCESS):
        findings.say("bound", f"the lower bound {plan.bound!r} is above the makespan {makespan!r}")


def check_durations(case: Case, findings: Findings) -> None:
    """The duration of a task is its work divided by the rate of its host for its kind."""
    graph, plan = case.graph, case.plan
    host = np.where(case.task_ok, plan.host, 0)
    rate = case.platform.rates(graph)[graph.speed_class, host]
    right = graph.work / rate
    findings.add(
        "duration",
        case.task_ok & differs(plan.start, plan.finish, right),
        lambda t: (
            f"{case.task(t)}: takes {float(plan.finish[t] - plan.start[t])!r} s, but work of "
            f"{float(graph.work[t])!r} s at rate {float(rate[t])!r} takes {float(right[t])!r} s"
        ),
    )


def check_cores(case: Case, findings: Findings) -> None:
    """A core runs one task at a time, so a host never runs more tasks than it has cores."""
    plan = case.plan
    tasks = np.flatnonzero(case.core_ok)
    most = max(h.cores for h in case.platform.hosts)
    core = plan.host[tasks].astype(np.int64) * most + plan.core[tasks]
    before, late = overlaps(core, plan.start[tasks], plan.finish[tasks])
    findings.add(
        "overlap",
        np.arange(len(late)),
        lambda j: f"{case.task(tasks[late[j]])}: starts while {case.task(tasks[before[j]])} holds the core",
    )
    if (case.graph.cores > 1).any():
        _check_pools(case, findings)


def _check_pools(case: Case, findings: Findings) -> None:
    """With multi-core tasks, a host never has more cores in use than it has."""
    plan, graph = case.plan, case.graph
    for h, host in enumerate(case.platform.hosts):
        here = np.flatnonzero(case.task_ok & (plan.host == h))
        finish = plan.finish[here] - slack(plan.finish[here])
        here, finish = here[finish > plan.start[here]], finish[finish > plan.start[here]]
        moment = np.concatenate((finish, plan.start[here]))
        change = np.concatenate((-graph.cores[here], graph.cores[here]))
        order = np.argsort(moment, kind="stable")
        used = np.cumsum(change[order])
        late = order[(used > host.cores) & (order >= len(here))] - len(here)
        findings.add(
            "cores",
            here[late],
            lambda t, host=host: (  # type: ignore[misc]
                f"{case.task(t)}: holds {int(graph.cores[t])} cores, but host {host.name!r} has {host.cores} in all"
            ),
        )


def check_windows(case: Case, findings: Findings) -> None:
    """No task starts before its release or ends after its deadline."""
    graph, plan = case.graph, case.plan
    findings.add(
        "release",
        case.task_ok & (graph.release > 0) & (plan.start < graph.release - slack(graph.release)),
        lambda t: f"{case.task(t)}: may not start before {float(graph.release[t])!r}",
    )
    findings.add(
        "deadline",
        case.task_ok & (plan.finish > graph.deadline + slack(plan.finish)),
        lambda t: f"{case.task(t)}: should have finished by {float(graph.deadline[t])!r}",
    )
