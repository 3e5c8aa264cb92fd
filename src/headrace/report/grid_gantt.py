"""Gantt charts of simulated runs on a changing grid, including stopped tasks and absent hosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.model.events import Event, HostJoined, HostLeft
from headrace.model.units import show_time
from headrace.report.chart import STOPPED, TRANSFER, Bar, Chart, Mark
from headrace.report.gantt import absences, arrivals_lane, bound_mark, core_lane, lanes_of, what_went_wrong

if TYPE_CHECKING:
    from headrace.simulator.events.run import SimulatedRun


def grid_chart(run: SimulatedRun) -> Chart:
    """Every execution, including lost ones, completed transfers, and absent hosts.

    O(log of the run).
    """
    bars = list(_bars(run))
    events = list(_comings_and_goings(run))
    hosts = run.platform.hosts
    bars += absences(events, run.makespan, bars)
    used = {bar.lane.rpartition(" ")[0] for bar in bars} & {host.name for host in hosts}
    notes = what_went_wrong([e for e in events if e.time > 0])
    if len(used) < len(hosts):
        notes = (*notes, f"{len(used)} of {len(hosts)} hosts are used; the others are not drawn.")
    return Chart(
        title=f"{run.graph.name} on {run.platform.name}, simulated under {run.scheduler}",
        lanes=lanes_of(run.platform, bars),
        bars=tuple(bars),
        end=run.makespan,
        marks=(
            Mark(run.makespan, f"makespan {show_time(run.makespan)}"),
            *bound_mark(run.bound, run.makespan),
        ),
        notes=(*run.notes, *notes),
    )


def _rows(run: SimulatedRun) -> Iterator[tuple[int, float, int, int, int]]:
    columns = (run.log_kind, run.log_time, run.log_subject, run.log_from, run.log_to)
    return zip(*(column.tolist() for column in columns), strict=True)


def _bars(run: SimulatedRun) -> Iterator[Bar]:
    from headrace.simulator.events import grid_state as w

    graph, hosts = run.graph, [host.name for host in run.platform.hosts]
    places = run.platform.network.place_names
    begun: dict[tuple[int, int], float] = {}
    sent: dict[tuple[int, int], float] = {}
    for kind, time, a, b, c in _rows(run):
        if kind == w.TASK_STARTED:
            begun[a, b] = time
        elif kind == w.TASK_ENDED:
            yield Bar(
                core_lane(hosts[b], c), begun[a, b], time, graph.task_names[a], graph.kinds[graph.kind[a]]
            )
        elif kind == w.TASK_STOPPED:
            yield Bar(core_lane(hosts[b], c), begun[a, b], time, graph.task_names[a], STOPPED)
        elif kind == w.MOVE_STARTED:
            sent[a, c] = time
        elif kind == w.MOVE_ENDED:
            label = f"{graph.item_names[a]} from {places[b]}"
            yield Bar(arrivals_lane(places[c]), sent[a, c], time, label, TRANSFER)


def _comings_and_goings(run: SimulatedRun) -> Iterator[Event]:
    from headrace.simulator.events import grid_state as w

    hosts = [host.name for host in run.platform.hosts]
    for kind, time, a, _, _ in _rows(run):
        if kind == w.HOST_LEFT:
            yield HostLeft(time, hosts[a])
        elif kind == w.HOST_JOINED:
            yield HostJoined(time, hosts[a])
