"""HEFT in plain Python, after Topcuoglu, Hariri and Wu (2002): no compiled code, nothing clever."""

from itertools import permutations

from headrace.model.graph import Graph
from headrace.model.platform import Platform

Busy = list[tuple[float, float]]


class PlainHeft:
    """Tasks by upward rank, each where it finishes first, in gaps; under fifo, transfers are booked on links."""

    def __init__(self, graph: Graph, platform: Platform) -> None:
        self.graph, self.hosts, self.network = graph, platform.hosts, platform.network
        self.place, self.rates = self.network.host_place.tolist(), platform.rates(graph)
        self.fifo, self.origin = platform.contention == "fifo", self.network.origin
        self.cores: list[list[Busy]] = [[[] for _ in range(host.cores)] for host in self.hosts]
        self.links: list[Busy] = [[] for _ in range(self.network.n_links)]
        start = {} if self.origin < 0 else {self.origin: 0.0}  # without an origin, inputs are everywhere
        self.copies = [dict(start) if maker < 0 else {} for maker in graph.producer.tolist()]

    def plan(self) -> dict[int, tuple[int, float, float]]:
        """Host, start and finish of each task."""
        rank, placed = self.ranks(), {}
        for task in sorted(self.graph.order.tolist(), key=lambda t: -rank[t]):
            _, host = min((self.back_from(task, host), host) for host in range(len(self.hosts)))
            core, start = self.first_gap(task, host, self.fetch(task, self.place[host]))
            placed[task] = (host, start, start + self.seconds(task, host))
            core.append(placed[task][1:])
            for item in self.graph.writes_of(task).tolist():
                self.copies[item] = {self.place[host]: placed[task][2]}
                if self.graph.result[item] and self.origin >= 0:
                    self.send(item, self.origin)
        return placed

    def seconds(self, task: int, host: int) -> float:
        return float(self.graph.work[task]) / self.hosts[host].speed_for(
            self.graph.kinds[self.graph.kind[task]]
        )

    def ranks(self) -> dict[int, float]:
        """rank(t) = mean run time + max over successors of (mean communication + their rank)."""
        pairs = list(permutations(self.place, 2))
        latency = sum(self.network.latency(a, b) for a, b in pairs if a != b) / max(1, len(pairs))
        per_byte = sum(1 / self.network.bandwidth(a, b) for a, b in pairs if a != b) / max(1, len(pairs))
        hosts, rank, after = range(len(self.hosts)), {}, dict.fromkeys(range(self.graph.n_tasks), 0.0)
        for task in reversed(self.graph.order.tolist()):
            rank[task] = sum(self.seconds(task, h) for h in hosts) / len(hosts) + after[task]
            reads = self.graph.reads_of(task)
            for maker in set(self.graph.producer[reads].tolist()) - {-1}:
                size = float(self.graph.size[reads[self.graph.producer[reads] == maker]].sum())
                moved = latency + size * per_byte if size > 0 else 0.0
                after[maker] = max(after[maker], moved + rank[task])
        return rank

    def back_from(self, task: int, host: int) -> float:
        """When the results of the task would be back if it ran on this host; nothing stays booked."""
        links, copies = [list(busy) for busy in self.links], [dict(c) for c in self.copies]
        _, start = self.first_gap(task, host, self.fetch(task, self.place[host]))
        self.links, self.copies = links, copies
        results = [
            i for i in self.graph.writes_of(task).tolist() if self.graph.result[i] and self.origin >= 0
        ]
        ways = [self.network.seconds(self.place[host], self.origin, self.graph.size[i]) for i in results]
        return start + self.seconds(task, host) + max(ways, default=0.0)

    def first_gap(self, task: int, host: int, ready: float) -> tuple[Busy, float]:
        starts = [gap([core], ready, self.seconds(task, host)) for core in self.cores[host]]
        return self.cores[host][starts.index(min(starts))], min(starts)

    def fetch(self, task: int, place: int) -> float:
        """When all inputs are at the place; what is there first is sent first."""
        items = [i for i in self.graph.reads_of(task).tolist() if self.copies[i]]
        items.sort(key=lambda i: (min(self.copies[i].values()), i))
        return max((self.send(item, place) for item in items), default=0.0)

    def send(self, item: int, target: int) -> float:
        """When the item is at the place, from the copy that arrives first; a signal is everywhere at once."""
        copies, size = self.copies[item], float(self.graph.size[item])
        if size == 0.0 or target in copies:
            return min(copies.values()) if size == 0.0 else copies[target]
        took = {source: self.network.seconds(source, target, size) for source in copies}
        uses = {source: self.uses(source, target, size) for source in copies}
        start = {source: common_gap(uses[source], since) for source, since in copies.items()}
        source = min(copies, key=lambda source: start[source] + took[source])
        copies[target] = start[source] + took[source]
        for link, length in uses[source] if self.fifo else ():
            link.append((start[source], start[source] + length))
        return copies[target]

    def uses(self, source: int, target: int, size: float) -> list[tuple[Busy, float]]:
        """The links of a route, and how long each needs for the bytes."""
        return [
            (self.links[k], size / self.network.link_bandwidth[k]) for k in self.network.route(source, target)
        ]


def common_gap(uses: list[tuple[Busy, float]], ready: float) -> float:
    """The earliest start, not before `ready`, at which each of these is idle for its own length."""
    while True:
        start = max((gap([busy], ready, length) for busy, length in uses), default=ready)
        if start == ready:
            return start
        ready = start


def gap(busy: list[Busy], ready: float, length: float) -> float:
    """The earliest start, not before `ready`, of so long a time in which none of these is busy."""
    for start, end in sorted(span for each in busy for span in each if span[1] > ready):
        if start >= ready + length:
            break
        ready = max(ready, end)
    return ready
