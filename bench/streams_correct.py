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
from headrace.runtime.streams.plan import even_plan
from headrace.runtime.streams.progress import UnitResult
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


def outcome(app: App, copies: dict[str, int], hosts: LocalHosts, options: StreamOptions) -> tuple[bool, int]:
    """Whether the results are those of a run in one process, unit by unit in order; and how often it restarted."""
    units: list[UnitResult] = []
    plan = even_plan(app, copies, hosts.names)
    done = Supervisor(app, plan, hosts, options, commit=units.append).run()
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


def kill_some(rng: random.Random, hosts: LocalHosts, moments: list[float], over: threading.Event) -> None:
    """Kill a process at each moment; at least one agent survives."""
    began, agents = time.monotonic(), sorted(hosts.pids.values())
    for moment in moments:
        if over.wait(max(0.0, began + moment - time.monotonic())):
            return
        if rng.random() < 0.15 and len(agents) > 1:
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


def correct(cases: int, kills: int) -> None:
    """Seeded cases, and cases with killed processes."""
    rows = []
    if cases:
        rows.append(judge("undisturbed", plain_case, cases, fresh=False))
    if kills:
        rows.append(judge("processes killed", killed_case, kills, fresh=True))
    print_rows(["applications", "cases", "wrong", "hangs", "restarts", "seconds"], rows)
