"""A replay done slowly and plainly: at every moment everything is looked at anew. O(events * nodes * links)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headrace.model.graph import OUTSIDE
from headrace.model.network import EVERYWHERE
from headrace.model.plan import Plan


def max_min_rates(ways: Sequence[Sequence[int]], bandwidth: Sequence[float]) -> list[float]:
    """Rates rise together; when a link is full, the flows on it keep theirs."""
    rate = [0.0] * len(ways)
    rising = {f for f, way in enumerate(ways) if way}
    while rising:
        used: dict[int, int] = {}
        for f in rising:
            for link in ways[f]:
                used[link] = used.get(link, 0) + 1
        room = {
            link: (bandwidth[link] - sum(rate[f] for f, way in enumerate(ways) if link in way)) / flows
            for link, flows in used.items()
        }
        step = min(room.values())
        for f in rising:
            rate[f] += step
        full = {link for link, left in room.items() if left <= step * (1 + 1e-9) + 1e-12 * bandwidth[link]}
        rising = {f for f in rising if not full & set(ways[f])}
    return rate


class SlowReplay:
    """Carries a plan out under any contention; `prefetch_depth` as in the replay."""

    def __init__(self, plan: Plan, prefetch_depth: int | None = None) -> None:
        self.plan, self.prefetch_depth = plan, prefetch_depth
        graph, network = plan.graph, plan.platform.network
        self.n, self.k = graph.n_tasks, len(plan.move_item)
        self.place = [int(network.host_place[h]) for h in plan.host]
        rates = plan.platform.rates(graph)
        self.seconds = [
            float(graph.work[t] / rates[graph.speed_class[t], plan.host[t]]) for t in range(self.n)
        ]
        position = {int(t): i for i, t in enumerate(graph.order)}
        self.queue: dict[tuple[int, int], list[int]] = {}
        self.host_queue: dict[int, list[int]] = {}
        for t in sorted(range(self.n), key=lambda t: (plan.start[t], plan.finish[t], position[t])):
            self.queue.setdefault((int(plan.host[t]), int(plan.core[t])), []).append(t)
            self.host_queue.setdefault(int(plan.host[t]), []).append(t)
        self.way = [network.route(int(plan.move_source[m]), int(plan.move_target[m])) for m in range(self.k)]
        self.bandwidth = network.link_bandwidth.tolist()
        size = plan.graph.size[plan.move_item].tolist()
        self.turn = {
            m: (float(plan.move_start[m]), size[m], float(plan.move_finish[m]), m) for m in range(self.k)
        }
        self.start = [math.inf] * (self.n + self.k)
        self.finish = [math.inf] * (self.n + self.k)
        self.left = [float(graph.size[plan.move_item[m]]) for m in range(self.k)]
        self.turn_over = [math.inf] * self.k
        """When what is left of each transfer needs no longer than its latency."""

    def run(self) -> tuple[list[float], list[float]]:
        """Start and finish of tasks, then of transfers."""
        now = 0.0
        while True:
            while self._start_what_can(now) or self._end_what_is_over(now):
                pass
            sharing = self._sharing(now)
            rate = dict(
                zip(sharing, max_min_rates([self.way[m] for m in sharing], self.bandwidth), strict=True)
            )
            ends = {m: now + self.left[m] / rate[m] for m in sharing}
            over = {m: now + (self.left[m] - self.left_when_over(m)) / rate[m] for m in sharing}
            open_turns = [moment for moment in over.values() if moment > now] if self._turns else []
            moments = [*(t for t in self._known_moments() if t > now), *ends.values(), *open_turns]
            if not moments:
                return self.start, self.finish
            later = min(moments)
            for m in sharing:
                if over[m] <= later * (1 + 1e-14):
                    self.turn_over[m] = min(self.turn_over[m], later)
                ended = ends[m] <= later * (1 + 1e-14)
                self.left[m] = 0.0 if ended else self.left[m] - rate[m] * (later - now)
            now = later

    def _delay(self, node: int) -> float:
        """What a node takes, or before it shares links."""
        if node < self.n:
            return self.seconds[node]
        m, plan = node - self.n, self.plan
        source, target = int(plan.move_source[m]), int(plan.move_target[m])
        size = float(plan.graph.size[plan.move_item[m]])
        if size == 0.0:
            return 0.0
        network = plan.platform.network
        return network.latency(source, target) if self._fair else network.seconds(source, target, size)

    @property
    def _fair(self) -> bool:
        return self.plan.platform.contention == "fair"

    def _flows(self, node: int) -> bool:
        return self._fair and node >= self.n and bool(self.way[node - self.n])

    def _known_moments(self) -> list[float]:
        running = [
            x for x in range(self.n + self.k) if self.start[x] < math.inf and self.finish[x] == math.inf
        ]
        delays = [self.start[x] + self._delay(x) for x in running]
        idle = [self._busy_until(m, link) for m in range(self.k) for link in self.way[m]]
        known = [moment for moment in idle if moment < math.inf] if self._turns else []
        return delays + self.plan.graph.release.tolist() + known

    @property
    def _turns(self) -> bool:
        return self.plan.platform.contention == "fifo" or self.plan.in_turn

    def _busy_until(self, m: int, link: int) -> float:
        """When a link is idle again after a transfer; inf while that is not known."""
        if self.plan.platform.routing == "links":
            return self.finish[self.n + m]
        if not self._fair:
            return self.start[self.n + m] + self.turn[m][1] / self.bandwidth[link]
        if self.left_when_over(m) >= self.turn[m][1]:
            return self.start[self.n + m] + self.turn[m][1] / self._slowest(m)
        return self.turn_over[m]

    def _slowest(self, m: int) -> float:
        return min(self.bandwidth[link] for link in self.way[m])

    def left_when_over(self, m: int) -> float:
        """The bytes that the route carries in its latency: when they are left, a turn on fair links is over."""
        plan = self.plan
        latency = plan.platform.network.latency(int(plan.move_source[m]), int(plan.move_target[m]))
        return latency * self._slowest(m) if latency else 0.0

    def _turn_links(self, m: int) -> list[int]:
        """On fair links, those of which the transfer can use at least 80 %."""
        if not self._fair or self.plan.platform.routing == "links":
            return self.way[m]
        return [link for link in self.way[m] if 0.8 * self.bandwidth[link] <= self._slowest(m) < math.inf]

    def _is_its_turn(self, m: int, now: float) -> bool:
        before = [o for o in range(self.k) if self.turn[o] < self.turn[m] and self.turn[o][1] > 0]
        return self.turn[m][1] == 0 or all(
            self._busy_until(o, link) <= now
            for o in before
            for link in self._turn_links(o)
            if link in self._turn_links(m)
        )

    def _sharing(self, now: float) -> list[int]:
        begun = [
            m
            for m in range(self.k)
            if self._flows(self.n + m) and self.finish[self.n + m] == math.inf and self.left[m] > 0
        ]
        return [m for m in begun if self.start[self.n + m] + self._delay(self.n + m) <= now]

    def _end_what_is_over(self, now: float) -> bool:
        over = []
        for x in range(self.n + self.k):
            if self.start[x] < math.inf and self.finish[x] == math.inf:
                waited = self.start[x] + self._delay(x) <= now
                if waited and not (self._flows(x) and self.left[x - self.n] > 0):
                    over.append(x)
        for x in over:
            self.finish[x] = now
        return bool(over)

    def _start_what_can(self, now: float) -> bool:
        able = [x for x in range(self.n + self.k) if self.start[x] == math.inf and self._can(x, now)]
        for x in able:
            self.start[x] = now
        return bool(able)

    def _can(self, x: int, now: float) -> bool:
        plan = self.plan
        if x >= self.n:
            m = x - self.n
            there = self._is_at(int(plan.move_item[m]), int(plan.move_source[m]), now)
            if self._turns and not self._is_its_turn(m, now):
                return False
            return there and (self.prefetch_depth is None or self._called(m))
        queue = self.queue[int(plan.host[x]), int(plan.core[x])]
        before = queue[: queue.index(x)]
        if any(self.finish[t] > now for t in before) or plan.graph.release[x] > now:
            return False
        return all(self._is_at(int(d), self.place[x], now) for d in plan.graph.reads_of(x))

    def _is_at(self, item: int, place: int, now: float) -> bool:
        graph, network = self.plan.graph, self.plan.platform.network
        maker = int(graph.producer[item])
        if maker == OUTSIDE and (graph.size[item] == 0 or network.origin in (EVERYWHERE, place)):
            return True
        if (
            maker != OUTSIDE
            and self.finish[maker] <= now
            and (graph.size[item] == 0 or self.place[maker] == place)
        ):
            return True
        return any(
            self.plan.move_item[m] == item
            and self.plan.move_target[m] == place
            and self.finish[self.n + m] <= now
            for m in range(self.k)
        )

    def _called(self, m: int) -> bool:
        """Whether any task that needs this transfer is near enough, or none needs it at all."""
        assert self.prefetch_depth is not None
        plan, item, target = self.plan, self.plan.move_item[m], self.plan.move_target[m]
        wanted = False
        for host, queue in self.host_queue.items():
            ahead = self.prefetch_depth * plan.platform.hosts[host].cores
            for at, t in enumerate(queue):
                if self.place[t] == target and item in plan.graph.reads_of(t):
                    wanted = True
                    if at < ahead or self.start[queue[at - ahead]] < math.inf:
                        return True
        onward = [
            o for o in range(self.k) if plan.move_item[o] == item and plan.move_source[o] == target and o != m
        ]
        needed = [o for o in onward if self._needed(o)]
        return any(self._called(o) for o in needed) or not (wanted or needed)

    def _needed(self, m: int) -> bool:
        """Whether a task reads what the transfer brings, there or further on."""
        plan, item, target = self.plan, self.plan.move_item[m], self.plan.move_target[m]
        if any(self.place[t] == target and item in plan.graph.reads_of(t) for t in range(self.n)):
            return True
        return any(
            plan.move_item[o] == item and plan.move_source[o] == target and o != m and self._needed(o)
            for o in range(self.k)
        )
