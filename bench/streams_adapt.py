"""Adapting a stream run to a host that becomes slower, and leaving alone one where nothing changes.

A reader sends 100 buffers a second. Two hosts work for it, and a third one is idle. Half-way through, one of the two
halves its power: the idle host has to take over what is missing.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from bench.tools import print_rows
from headrace.deploying import deploy
from headrace.model.deployment import Deployment
from headrace.model.pipeline import FilterProfile, Pipeline, Source
from headrace.model.platform import Host, Platform, Site
from headrace.runtime.filters import App, Unit
from headrace.runtime.streams.emulation import emulate_platform
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import plan_of
from headrace.runtime.streams.progress import Progress
from headrace.runtime.streams.redeploy import Redeployer
from headrace.runtime.streams.shared_host import SharedAgent
from headrace.runtime.streams.sleepers import Sleeper, SleepingReader
from headrace.runtime.streams.specs import Emulation
from headrace.runtime.streams.supervisor import Supervisor
from headrace.stream_planning import deploy_again

BUFFER = 20_000
READ, WORK, SHOW = 0.010, 0.019, 0.004
"""Seconds for each buffer on a host of power 4."""
UNIT = 100
"""Buffers of a unit of work, which takes a second."""
WINDOW = 3.0
"""Seconds over which the throughput is measured."""
SLOW = "n1"


def sleeping() -> App:
    """Three filters that sleep for their time."""
    app = App("changing power", buffer=BUFFER, units=[Unit("all", {})])
    app.filter("read", partial(SleepingReader, READ, UNIT, {"read-work": BUFFER}))
    app.filter("work", partial(Sleeper, WORK / BUFFER, {"work-show": 0.1}), inputs=["read"])
    app.filter("show", partial(Sleeper, SHOW / (0.1 * BUFFER), {}), inputs=["work"])
    return app


def planned(slow: float = 1.0) -> Deployment:
    """The deployment for five hosts of power 4, one of them slower than that."""
    megabytes = UNIT * BUFFER / 1e6
    filters = [
        FilterProfile("read", READ * UNIT, megabytes, 4.0),
        FilterProfile("work", WORK * UNIT, megabytes * 0.1, 4.0),
        FilterProfile("show", SHOW * UNIT, 0.0, 4.0),
    ]
    hosts = tuple(Host(f"n{i}", 4.0 / slow if f"n{i}" == SLOW else 4.0) for i in range(5))
    lab = Platform((Site("lab", hosts, bandwidth=12.5e6),), name="lab")
    return deploy(Pipeline("changing power", filters, sources=[Source("n0", {"n0": 1.0})]), lab)


class Changes:
    """Notes when the run adapted."""

    def __init__(self) -> None:
        self.first: float | None = None

    def __call__(self, progress: Progress) -> None:
        if self.first is None and (progress.adaptations or progress.redeployments):
            self.first = progress.samples[-1][0]


def adaptive_run(seconds: float, slow_after: float | None) -> tuple[Progress, Changes]:
    """A run of so many seconds, with a host that halves its power, or without."""
    app, made = sleeping(), planned()
    plan, changes = plan_of(app, made), Changes()
    names = [host.name for host in made.problem.platform.hosts]
    pairs = [(name, host) for name in app.order for host in names]
    with tempfile.TemporaryDirectory() as folder, SharedAgent(names) as hosts:
        powers = dict.fromkeys(app.order, 4.0)
        emulated = emulate_platform(app, pairs, made.problem.platform, powers, Path(folder))
        slowdowns = {} if slow_after is None else {SLOW: (slow_after, 2.0)}
        run = Supervisor(
            app,
            plan,
            hosts,
            StreamOptions(credits=4, adapt=True, duration=seconds),
            emulation=Emulation(emulated.factors, emulated.ports, slowdowns=slowdowns),
            redeployer=Redeployer(app, made.problem, deploy_again),
            commit=lambda unit: None,
            observe=changes,
        )
        return run.run(), changes


def rate_around(progress: Progress, moment: float) -> float:
    """MB/s received by all filters but the reader, in a window that ends at this moment, as MB/s read."""
    inside = [s for s in progress.samples if moment - WINDOW <= s[0] <= moment]
    if len(inside) < 2:
        return 0.0
    (first, _, low), (last, _, high) = inside[0], inside[-1]
    return (high - low) / 1.1 / 1e6 / (last - first)


def recovery(seconds: float) -> None:
    """A host halves its power half-way: how soon the throughput is 0.9 of the new optimum, and the rate at the end."""
    progress, changes = adaptive_run(seconds, seconds / 2)
    best = planned(2.0).throughput
    slow = progress.began + seconds / 2
    end = progress.samples[-1][0] - 1.0
    rows: list[list[object]] = [
        ["planned before, MB/s", planned().throughput],
        ["measured before, MB/s", rate_around(progress, slow)],
        ["new optimum, MB/s", best],
        ["weights changed", progress.adaptations],
        ["copies changed", progress.redeployments],
        ["hosts at the end", ", ".join(progress.plan.hosts)],
    ]
    if changes.first is not None:
        steps = (changes.first + 0.25 * i for i in range(int((end - changes.first) * 4)))
        back = next((m - changes.first for m in steps if rate_around(progress, m) >= 0.9 * best), None)
        rows += [
            ["noticed after, s", changes.first - slow],
            ["0.9 of the optimum, s after that", "never" if back is None else back],
            ["10 s after that, of the optimum", rate_around(progress, changes.first + 10) / best],
        ]
    rows.append(["at the end, of the optimum", rate_around(progress, end) / best])
    print_rows(["a host halves its power", ""], rows)


def steadiness(minutes: float) -> None:
    """Nothing changes: nothing is planned again."""
    progress, _ = adaptive_run(60 * minutes, None)
    rows: list[list[object]] = [
        ["minutes", minutes],
        ["planned, MB/s", planned().throughput],
        ["measured, MB/s", progress.samples[-1][1] / 1e6 / (progress.ended - progress.began)],
        ["weights changed", progress.adaptations],
        ["deployments planned", progress.plans],
        ["copies changed", progress.redeployments],
    ]
    print_rows(["nothing changes", ""], rows)


def adapt(minutes: float) -> None:
    """Both; takes the minutes and one more."""
    recovery(60.0)
    steadiness(minutes)
