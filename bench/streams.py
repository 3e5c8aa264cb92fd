"""The filter-stream runtime. On two idle cores:

python -m bench.streams                             speed beside TCP and Dask, throughput beside the plan; 8 minutes
python -m bench.streams ray --ray-python PATH       speed beside Ray; a minute
python -m bench.streams adapt [--minutes 10]        a host that halves its power; then no change; the minutes and 1
python -m bench.streams memory [--minutes 10]       memory, files and processes over 100,000 buffers; the minutes
python -m bench.streams correct [--cases 1000] [--kills 100] [--changes 30]
                                                    seeded applications, killed processes, changes; 12 minutes

Ray cannot share an environment with this package. For one of its own:
python -m venv /tmp/rayenv && /tmp/rayenv/bin/pip install ray; then --ray-python /tmp/rayenv/bin/python.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from bench import streams_adapt, streams_correct, streams_memory
from bench.tools import geometric_mean, print_rows
from headrace.deploying import deploy
from headrace.model.deployment import Deployment
from headrace.model.pipeline import FilterProfile, Pipeline, Source
from headrace.model.platform import Host, Platform, Site
from headrace.runtime.filters import App, Buffer, Filter, Output, Reader, Unit, Work
from headrace.runtime.streams.emulation import emulate_platform
from headrace.runtime.streams.hosts import LocalHosts
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.plan import even_plan, plan_of
from headrace.runtime.streams.progress import UnitResult
from headrace.runtime.streams.routing import Routing
from headrace.runtime.streams.shared_host import SharedAgent
from headrace.runtime.streams.sleepers import Sleeper, SleepingReader
from headrace.runtime.streams.summary import summarize
from headrace.runtime.streams.supervisor import Supervisor

TOTAL = 1_000_000_000
ROUNDS = 3


class Source1(Reader):
    """Sends the same bytes again and again, at the end the CPU seconds that took."""

    def init(self, work: Work) -> None:
        self.work = work

    def read(self, out: Output) -> None:
        size = int(self.work.settings["size"])
        data = bytes(size)
        cpu = time.process_time()
        for _ in range(int(self.work.settings["count"])):
            out.send(data)
        out.send(f"{time.process_time() - cpu}".encode())


class Sink(Filter):
    """Its result: bytes/s from the first buffer to the last, the producer's CPU seconds, and its own."""

    def init(self, work: Work) -> None:
        self.total, self.first, self.cpu = 0, 0.0, time.process_time()

    def process(self, buffer: Buffer, out: Output) -> None:
        if not self.first:
            self.first = time.perf_counter()
        self.total += len(buffer.data)
        if len(buffer.data) < 100:
            self.producer, self.last = buffer.data.decode(), time.perf_counter()

    def finalize(self, out: Output) -> None:
        rate = self.total / (self.last - self.first)
        out.send(f"{rate} {self.producer} {time.process_time() - self.cpu}".encode())


def bare_tcp(size: int, total: int) -> tuple[float, float, float]:
    """A loop that sends and receives on one connection: bytes/s, CPU seconds of the sender and of the receiver."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        child = os.fork()
        if child == 0:
            with socket.create_connection(server.getsockname()) as out:
                data = bytes(size)
                for _ in range(total // size):
                    out.sendall(data)
            os._exit(0)
        link, _ = server.accept()
        with link:
            view = memoryview(bytearray(size))
            began, cpu, got = time.perf_counter(), time.process_time(), 0
            while count := link.recv_into(view):
                got += count
            rate, cpu = got / (time.perf_counter() - began), time.process_time() - cpu
        _, _, used = os.wait4(child, 0)
    return rate, used.ru_utime + used.ru_stime, cpu


def one_stream(size: int, hosts: LocalHosts, total: int) -> tuple[float, float, float]:
    """One producer and one consumer: bytes/s, CPU seconds of each."""
    count = total // size
    app = App("speed", buffer=size, units=[Unit("all", {"size": size, "count": count})])
    app.filter("source", Source1)
    app.filter("sink", Sink, inputs=["source"])
    units: list[UnitResult] = []
    plan = even_plan(app, {}, hosts.names)
    Supervisor(app, plan, hosts, StreamOptions(), commit=units.append).run()
    rate, producer, consumer = map(float, units[0].results["sink"][0].split())
    return rate, producer, consumer


def speed() -> None:
    """One stream against a bare TCP loop, alternating; the best rate and the least CPU time of some rounds."""
    rows: list[list[object]] = []
    with LocalHosts(["h"]) as hosts:
        for size in (1_000_000, 64_000, 4_000):
            total = TOTAL if size > 10_000 else TOTAL // 10
            bare, ours = [], []
            for _ in range(ROUNDS):
                bare.append(bare_tcp(size, total))
                ours.append(one_stream(size, hosts, total))
            plain, rate = (max(run[0] for run in runs) for runs in (bare, ours))
            cpu = [
                min(run[side] for run in runs) / (total // size) * 1e6
                for runs in (bare, ours)
                for side in (1, 2)
            ]
            rows.append([f"{size:,}", plain / 1e6, rate / 1e6, rate / plain, rate / size, *cpu])
    print_rows(
        [
            "buffer, B",
            "bare TCP, MB/s",
            "stream, MB/s",
            "ratio",
            "buffers/s",
            *(f"{what} CPU, µs/buffer" for what in ("bare sender", "bare receiver", "producer", "consumer")),
        ],
        rows,
    )


def put_all(name: str, size: int, count: int) -> None:
    """In a Dask worker: put buffers into a queue."""
    from distributed import Queue

    queue = Queue(name)
    for _ in range(count):
        queue.put(bytes(size))


def get_all(name: str, count: int) -> float:
    """In a Dask worker: bytes/s of taking buffers out of a queue."""
    from distributed import Queue

    queue, total = Queue(name), len(Queue(name).get())
    began = time.perf_counter()
    for _ in range(count - 1):
        total += len(queue.get())
    return total / (time.perf_counter() - began)


def dask_queue(size: int, count: int) -> float:
    """Bytes/s of the same pipeline through a Dask Queue of four buffers."""
    from distributed import Client, Queue

    from headrace.runtime.cluster import open_local

    with open_local(2) as cluster:
        client: Client = cluster.client
        Queue("buffers", client=client, maxsize=4)
        first, second = sorted(client.scheduler_info()["workers"])
        sent = client.submit(put_all, "buffers", size, count, workers=[first], pure=False)
        rate: float = client.submit(get_all, "buffers", count, workers=[second], pure=False).result()
        sent.result()
    return rate


def against_dask() -> None:
    """One stream and a Dask Queue, in one run."""
    rows: list[list[object]] = []
    with LocalHosts(["h"]) as hosts:
        for size, count in ((1_000_000, 100), (64_000, 500)):
            ours, _, _ = one_stream(size, hosts, TOTAL)
            theirs = dask_queue(size, count)
            rows.append([f"{size:,}", ours / 1e6, theirs / 1e6, ours / theirs])
    print_rows(["buffer, B", "stream, MB/s", "Dask Queue, MB/s", "ratio"], rows)


BUFFER = 20_000


def seeded(seed: int, count: int) -> tuple[App, Deployment]:
    """An application of sleeping filters and its deployment on hosts of unequal power."""
    rng = random.Random(seed)
    times = [rng.uniform(0.008, 0.02), rng.uniform(0.03, 0.1), rng.uniform(0.005, 0.02)]
    app = App(f"seed {seed}", buffer=BUFFER, units=[Unit("all", {})])
    app.filter("read", partial(SleepingReader, times[0], count, {"read-work": BUFFER}))
    app.filter("work", partial(Sleeper, times[1] / BUFFER, {"work-show": 0.1}), inputs=["read"])
    app.filter("show", partial(Sleeper, times[2] / (0.1 * BUFFER), {}), inputs=["work"])
    megabytes = count * BUFFER / 1e6
    filters = [
        FilterProfile("read", times[0] * count, megabytes, 4.0),
        FilterProfile("work", times[1] * count, megabytes * 0.1, 4.0),
        FilterProfile("show", times[2] * count, 0.0, 4.0),
    ]
    hosts = (
        Host("n0", 4.0),
        *(Host(f"n{i}", rng.choice([4.0, 2.0, 1.0])) for i in range(1, rng.randrange(5, 8))),
    )
    lab = Platform((Site("lab", hosts, bandwidth=rng.choice([2e6, 12.5e6])),), name="lab")
    pipeline = Pipeline(app.name, filters, sources=[Source("n0", {"n0": 1.0})])
    return app, deploy(pipeline, lab)


def carried_out(app: App, made: Deployment, routing: Routing, *, work_conserving: bool = False) -> float:
    """Measured MB/s on emulated hosts."""
    plan = plan_of(app, made)
    with tempfile.TemporaryDirectory() as folder, SharedAgent(plan.hosts) as hosts:
        powers = dict.fromkeys(app.order, 4.0)
        emulation = emulate_platform(app, plan.pairs, made.problem.platform, powers, Path(folder))
        options = StreamOptions(routing=routing, work_conserving=work_conserving, credits=4)
        run = Supervisor(app, plan, hosts, options, emulation=emulation, commit=lambda unit: None)
        return summarize(app, run.run()).throughput


def as_planned(seeds: int = 10, count: int = 300) -> None:
    """Deployments on emulated unequal hosts: measured against planned, and against other ways of routing."""
    rows: list[list[object]] = []
    ratios: list[float] = []
    gains: list[float] = []
    for seed in range(seeds):
        app, made = seeded(seed, count)
        planned = carried_out(app, made, "planned")
        turns = carried_out(app, made, "round-robin")
        conserving = carried_out(app, made, "planned", work_conserving=True)
        least = carried_out(app, made, "least-loaded")
        speeds = {made.problem.hosts[p.host].speed for p in made.of("work")}
        ratios.append(planned / made.throughput)
        if len(speeds) > 1:
            gains.append(planned / turns)
        copies = " + ".join(str(made.copies(f.name)) for f in made.problem.pipeline.filters)
        rows.append(
            [
                seed,
                copies,
                "unequal" if len(speeds) > 1 else "equal",
                made.throughput,
                planned,
                ratios[-1],
                turns,
                planned / turns,
                conserving,
                least,
            ]
        )
        print(rows[-1], file=sys.stderr, flush=True)
    print_rows(
        [
            "seed",
            "copies",
            "hosts of the second filter",
            "planned, MB/s",
            "measured",
            "ratio",
            "round-robin",
            "over round-robin",
            "work-conserving",
            "least-loaded",
        ],
        rows,
    )
    close = sum(abs(ratio - 1) <= 0.08 for ratio in ratios)
    gain = f"; over round-robin {geometric_mean(gains):.3f} in geometric mean" if gains else ""
    print(f"within 8 % of the plan: {close} of {seeds}{gain}")


def against_ray(python: str) -> None:
    """One stream, and Ray in a process of that Python, in one run."""
    script = str(Path(__file__).with_name("streams_ray.py"))
    cases = ((1_000_000, 300), (64_000, 2000))
    with tempfile.TemporaryDirectory() as home:  # Ray writes a token into the home folder
        done = subprocess.run(
            [python, script, *(f"{size}x{count}" for size, count in cases)],
            env=os.environ | {"HOME": home, "PYTHONPATH": ""},
            stdout=subprocess.PIPE,
            check=True,
        )
    rows: list[list[object]] = []
    with LocalHosts(["h"]) as hosts:
        for line in done.stdout.splitlines():
            found = json.loads(line)
            ours, _, _ = one_stream(found["size"], hosts, TOTAL)
            best = max(found["actors"], found["generator"])
            rows.append(
                [
                    f"{found['size']:,}",
                    ours / 1e6,
                    found["actors"] / 1e6,
                    found["generator"] / 1e6,
                    ours / best,
                ]
            )
    print_rows(
        ["buffer, B", "stream, MB/s", "Ray actors, MB/s", "Ray generator, MB/s", "over the better"], rows
    )


def main(ray_python: str | None = None) -> None:
    speed()
    against_dask()
    if ray_python is not None:
        against_ray(ray_python)
    as_planned()


def command() -> None:
    """What to measure, from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.streams", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "what", nargs="?", default="speed", choices=["speed", "ray", "adapt", "memory", "correct"]
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="adapt without a change; memory")
    parser.add_argument("--buffers", type=int, default=100_000, help="memory")
    parser.add_argument("--cases", type=int, default=1000, help="correct: undisturbed cases")
    parser.add_argument("--kills", type=int, default=100, help="correct: cases with killed processes")
    parser.add_argument("--changes", type=int, default=30, help="correct: cases with changing deployments")
    parser.add_argument("--ray-python", metavar="PATH", help="a Python that has Ray, for speed and ray")
    given = parser.parse_args()
    if given.what == "adapt":
        streams_adapt.adapt(given.minutes)
    elif given.what == "memory":
        streams_memory.memory(given.minutes, given.buffers)
    elif given.what == "correct":
        streams_correct.correct(given.cases, given.kills, given.changes)
    elif given.what == "ray":
        if given.ray_python is None:
            parser.error("ray needs --ray-python PATH")
        against_ray(given.ray_python)
    else:
        main(given.ray_python)


if __name__ == "__main__":
    command()
