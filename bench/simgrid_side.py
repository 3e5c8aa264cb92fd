"""The sweep of a case file in SimGrid; run by the Python that has it: python simgrid_side.py CASE.

Prints one JSON object: makespan, finish of each task, CPU seconds of the simulation, peak memory. One actor for each
host carries out the host's list of tasks. Only the standard library and simgrid are used.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from simgrid import Comm, Engine, Host, Semaphore, this_actor

from simgrid_memory import peak_megabytes

GIGA = 1e9  # flops a second of a host of rate 1
OPTIONS = (
    "network/model:CM02",
    "network/crosstraffic:0",
    "network/TCP-gamma:1e15",
    "network/loopback-bw:1e15",
)


class Fetch:
    """A file on its way to a cluster. One actor waits for the communication, and wakes the others that need it."""

    def __init__(self) -> None:
        self.comm: Any = None
        self.done = self.awaited = False
        self.others: list[Semaphore] = []

    def send(self, source: Host, target: Host, size: int) -> None:
        """Start; others may run before this returns."""
        self.comm = Comm.sendto_async(source, target, size)

    def wait(self) -> None:
        """Until the file is there."""
        while self.comm is None and not self.done:
            this_actor.yield_()
        if self.done:
            return
        if self.awaited:
            semaphore = Semaphore(0)
            self.others.append(semaphore)
            semaphore.acquire()
            return
        self.awaited = True
        self.comm.wait()
        self.done, self.comm = True, None
        for semaphore in self.others:
            semaphore.release()


class Sweep:
    """What the actors share: the case, what each cluster has asked for, and what happened."""

    def __init__(self, case: dict[str, Any], origin: Host) -> None:
        self.case, self.origin = case, origin
        self.asked: list[dict[int, Fetch]] = [{} for _ in case["uplinks"]]
        self.shared = set(case["shared"])
        self.finish = [0.0] * len(case["work"])

    def ask(self, task: int, cluster: int, host: Host) -> None:
        """Have the inputs sent that nobody in the cluster has asked for."""
        asked = self.asked[cluster]
        for item in self.case["inputs"][task]:
            if item not in asked:
                asked[item] = Fetch()
                asked[item].send(self.origin, host, int(self.case["size"][item]))


def work_off(sweep: Sweep, host: Host, cluster: int, tasks: list[int]) -> None:
    """An actor: fetch ahead, wait for the inputs, compute, send the output back without waiting."""
    case, ahead, asked = sweep.case, sweep.case["ahead"], sweep.asked[cluster]
    for task in tasks[:ahead]:
        sweep.ask(task, cluster, host)
    for place, task in enumerate(tasks):
        for item in case["inputs"][task]:
            asked[item].wait()
            if item not in sweep.shared:
                del asked[item]
        if place + ahead < len(tasks):
            sweep.ask(tasks[place + ahead], cluster, host)
        this_actor.execute(case["work"][task] * GIGA)
        sweep.finish[task] = Engine.clock
        result = Comm.sendto_init(host, sweep.origin)
        result.set_payload_size(int(case["output"][task]))
        result.detach()  # it is sent; the simulation does not end before it has arrived


def follow_host(host: Host, moments: list[float]) -> None:
    """An actor: the host's next speed at each moment. (The binding takes one profile of an engine, not more.)"""
    for number, moment in enumerate(moments):
        this_actor.sleep_until(moment)
        host.pstate = number


def follow_link(link: Any, moments: list[float], values: list[float]) -> None:
    """An actor: the link's next bandwidth at each moment."""
    for moment, value in zip(moments, values, strict=True):
        this_actor.sleep_until(moment)
        link.set_bandwidth(value)


def main(path: Path) -> None:
    case = json.loads(path.read_text())
    # Its actors are threads of which one runs at a time: on one core it takes half the CPU time it takes on two.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    engine = Engine([sys.argv[0], *(f"--cfg={option}" for option in OPTIONS), "--log=root.thres:warning"])
    zone = engine.netzone_root.add_netzone_full("grid")
    origin = zone.add_host("origin", GIGA)
    uplinks = [zone.add_link(f"uplink{c}", float(bandwidth)) for c, bandwidth in enumerate(case["uplinks"])]
    hosts, availability = [], case.get("availability", [])
    for h, (cluster, rate) in enumerate(case["hosts"]):
        levels = availability[h][1] if availability else [1.0]
        host = zone.add_host(f"h{h}", [rate * GIGA * level for level in levels])
        zone.add_route(origin, host, [uplinks[cluster]])
        hosts.append(host)
    zone.seal()
    for host, (moments, _) in zip(hosts, availability, strict=False):
        origin.add_actor("weather", follow_host, host, moments).daemonize()
    for link, (moments, values) in zip(uplinks, case.get("bandwidth", ()), strict=False):
        origin.add_actor("weather", follow_link, link, moments, values).daemonize()
    sweep = Sweep(case, origin)
    for h, host in enumerate(hosts):
        host.add_actor(f"actor{h}", work_off, sweep, host, case["hosts"][h][0], case["order"][h])
    began = time.process_time()
    engine.run()
    seconds = time.process_time() - began
    answer = {
        "makespan": Engine.clock,
        "finish": sweep.finish,
        "seconds": seconds,
        "megabytes": peak_megabytes(),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
