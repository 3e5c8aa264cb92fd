"""Seeded applications on real processes: their results must be those of one process, also when processes are killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.runtime.streams.made import LIMIT, Slow, build

from bench.tools import print_rows
from headrace.runtime.filters import App
from headrace.runtime.filters_here import run_here
from headrace.runtime.streams.hosts import LocalHosts
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import StreamPlan, even_plan
from headrace.runtime.streams.progress import UnitResult
from headrace.runtime.streams.redeploy import Redeployer
from headrace.runtime.streams.routing import ROUTINGS
from headrace.runtime.streams.supervisor import Supervisor

HANG_SECONDS = 120
"""A case that takes longer counts as one that hangs."""
RESTARTS = 6


class Hang(Exception):
    """A case took too long."""


def seeded_app(
    rng: random.Random, most_buffers: int = 25, *, ends: bool = True
) -> tuple[App, dict[str, int]]:
    """A chain or diamond of up to five filters, and one to four copies of each; `ends`: which send at the end, too."""
    units = [
        [
            rng.choice([1, LIMIT - 1, LIMIT]) if rng.random() < 0.3 else rng.randrange(1, 41)
            for _ in range(rng.randrange(most_buffers + 1))
        ]
        for _ in range(rng.randrange(1, 5))
    ]
    app = build(rng.choice(["chain", "diamond"]), rng.randrange(4), rng.randrange(4), units, ends=ends)
    return app, {name: rng.randrange(1, 5) for name in app.order}


def outcome(
    app: App,
    copies: dict[str, int],
    hosts: LocalHosts,
    options: StreamOptions,
    redeployer: Redeployer | None = None,
) -> tuple[bool, int]:
    """Whether the results are those of a run in one process, unit by unit in order; and how often it restarted."""
    units: list[UnitResult] = []
    plan = even_plan(app, copies, hosts.names)
    run = Supervisor(app, plan, hosts, options, redeployer=redeployer, commit=units.append)
    done = run.run()
    found = Counter(data for unit in units for buffers in unit.results.values() for data in buffers)
    expected = Counter(data for buffers in run_here(app, copies).values() for data in buffers)
    whole = [unit.name for unit in units] == [unit.name for unit in app.units]
    return found == expected and whole, done.restarts


def plain_case(seed: int, hosts: LocalHosts) -> tuple[bool, int]:
    """An application with options drawn at random."""
    rng = random.Random(f"plain {seed}")
    app, copies = seeded_app(rng)
    options = StreamOptions(
        credits=rng.choice([1, 2, 4, 16]), routing=rng.choice(ROUTINGS), work_conserving=rng.random() < 0.5
    )
    return outcome(app, copies, hosts, options)


def killed_case(seed: int, hosts: LocalHosts) -> tuple[bool, int]:
    """The same, while one to three processes are killed at random moments: copies, and now and then an agent.

    When an agent dies, there are fewer copies, so results may not depend on their number.
    """
    rng = random.Random(f"killed {seed}")
    app, copies = seeded_app(rng, most_buffers=80, ends=False)
    app.filters["collect"] = partial(Slow, app.filters["collect"])
    moments = sorted(rng.uniform(0.02, 1.0) for _ in range(rng.randrange(1, 4)))
    over = threading.Event()
    killer = threading.Thread(target=kill_some, args=(rng, hosts, moments, over))
    killer.start()
    try:
        return outcome(app, copies, hosts, StreamOptions(credits=2, restarts=RESTARTS))
    finally:
        over.set()
        killer.join()


class Restless(Redeployer):
    """Changes to another deployment as often as it is asked: other copies, on other hosts."""

    def __init__(self, app: App, rng: random.Random, hosts: LocalHosts) -> None:
        self._made, self._rng, self._hosts = app, rng, hosts
        self.plans = 0

    def observe(self, *given: object, **named: object) -> StreamPlan:
        self.plans += 1
        copies = {name: self._rng.randrange(1, 5) for name in self._made.order}
        some = self._rng.sample(self._hosts.names, self._rng.randrange(1, len(self._hosts.names) + 1))
        return even_plan(self._made, copies, some)


def changed_case(seed: int, hosts: LocalHosts) -> tuple[bool, int]:
    """An application whose deployment changes while it runs, in half of the cases with killed copies; the changes."""
    rng = random.Random(f"changed {seed}")
    sizes = [rng.randrange(400) for _ in range(rng.randrange(10, 20))]
    units = [[rng.randrange(1, 41) for _ in range(size)] for size in sizes]
    app = build(rng.choice(["chain", "diamond"]), rng.randrange(1, 4), 1, units, ends=False)
    app.filters["collect"] = partial(Slow, app.filters["collect"])
    copies = {name: rng.randrange(1, 5) for name in app.order}
    over = threading.Event()
    moments = sorted(rng.uniform(0.1, 4.0) for _ in range(2 * (seed % 2)))
    killer = threading.Thread(target=kill_some, args=(rng, hosts, moments, over, 0.0))
    restless = Restless(app, random.Random(seed), hosts)
    killer.start()
    try:
        options = StreamOptions(credits=2, restarts=RESTARTS, adapt=True)
        return outcome(app, copies, hosts, options, restless)[0], restless.plans
    finally:
        over.set()
        killer.join()


def kill_some(
    rng: random.Random,
    hosts: LocalHosts,
    moments: list[float],
    over: threading.Event,
    agents_too: float = 0.15,
) -> None:
    """Kill a process at each moment, an agent with some probability; at least one agent survives."""
    began, agents = time.monotonic(), sorted(hosts.pids.values())
    for moment in moments:
        if over.wait(max(0.0, began + moment - time.monotonic())):
            return
        if rng.random() < agents_too and len(agents) > 1:
            victims = [agents.pop(rng.randrange(len(agents)))]
        else:
            victims = [pid for agent in agents for pid in children_of(agent)]
        if victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(victims), signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    """The copies of an agent, by process id."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@contextlib.contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Raise Hang in the main thread after so many seconds."""

    def ring(number: int, frame: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def judge(
    name: str, case: Callable[[int, LocalHosts], tuple[bool, int]], count: int, fresh: bool
) -> list[object]:
    """All cases of a kind; `fresh`: with agents of their own."""
    wrong: list[int] = []
    hung: list[int] = []
    restarts = 0
    began = time.perf_counter()
    hosts = LocalHosts(["a", "b"])
    try:
        for seed in range(count):
            if fresh:
                hosts.close()
                hosts = LocalHosts(["a", "b", "c"])
            try:
                with limit(HANG_SECONDS):
                    right, again = case(seed, hosts)
                    restarts += again
                    if not right:
                        print(f"{name} {seed}: other results", file=sys.stderr, flush=True)
                        wrong.append(seed)
            except Hang:
                print(f"{name} {seed}: hangs", file=sys.stderr, flush=True)
                hung.append(seed)
                hosts.close()
                hosts = LocalHosts(["a", "b"])
            except Exception as error:
                print(f"{name} {seed}: {error!r}", file=sys.stderr, flush=True)
                wrong.append(seed)
            if (seed + 1) % 50 == 0:
                print(f"{name}: {seed + 1} of {count}", file=sys.stderr, flush=True)
    finally:
        hosts.close()
    took = time.perf_counter() - began
    return [name, count, len(wrong), len(hung), restarts, took]


def correct(cases: int, kills: int, changes: int) -> None:
    """Seeded cases, cases with killed processes, and cases whose deployment changes."""
    rows = []
    if cases:
        rows.append(judge("undisturbed", plain_case, cases, fresh=False))
    if kills:
        rows.append(judge("processes killed", killed_case, kills, fresh=True))
    if changes:
        rows.append(judge("deployment changed", changed_case, changes, fresh=False))
    print_rows(["applications", "cases", "wrong", "hangs", "restarts or changes", "seconds"], rows)
