"""L-HEFT in plain Python, after figure 5 and equation 3 of the macro-dataflow paper, for small cases."""

from __future__ import annotations

import numpy as np

from headrace.core.view import RunView


class Plain:
    """The state of a run as dictionaries and lists, read off the arrays once."""

    def __init__(self, view: RunView) -> None:
        graph, network = view.graph, view.platform.network
        self.view, self.network = view, network
        self.hosts = [h for h in range(len(view.platform.hosts)) if view.state.host_up[h]]
        self.place = {h: int(network.host_place[h]) for h in self.hosts}
        self.cores = {h: view.platform.hosts[h].cores for h in self.hosts}
        self.owners = {i: set(view.places_of(i)) for i in range(graph.n_items)}
        self.left = {h: self._left(h, late_weight=0.0) for h in self.hosts}

    def seconds(self, task: int, host: int) -> float:
        one = np.array([task], np.int32), np.array([host], np.int32)
        return float(self.view.estimates.seconds(self.view.time, *one)[0])

    def inputs(self, task: int) -> list[int]:
        """Inputs that may have to be moved."""
        return [i for i in self.view.graph.reads_of(task).tolist() if not self.view.static.no_transfer[i]]

    def _left(self, host: int, late_weight: float) -> float:
        """left_time(f_r) - (C - p(f_r)): what is queued and runs, less what running tasks have had.

        One that is late needs `late_weight` times as long again as it is late.
        """
        state, now = self.view.state, self.view.time
        running = [t for t in range(self.view.graph.n_tasks) if state.run_host[t] == host]
        whole = sum(float(state.predicted[t]) for t in self.view.queue(host) + running)
        had = 0.0
        for t in running:
            spent, expected = now - float(state.run_start[t]), float(state.predicted[t])
            had += spent if spent < expected else expected - late_weight * (spent - expected)
        return max(0.0, whole - had) / self.cores[host]

    def bytes_lacking(self, task: int, place: int) -> float:
        size = self.view.graph.size
        return sum(float(size[i]) for i in self.inputs(task) if place not in self.owners[i])

    def arrival(self, task: int, place: int) -> float:
        """One input after the other from where it was first."""
        network, total = self.network, 0.0
        for i in self.inputs(task):
            if place not in self.owners[i]:
                source = int(self.view.state.holder[i])
                size = float(self.view.graph.size[i])
                total += float(network.latency(source, place)) + size / float(
                    network.bandwidth(source, place)
                )
        return total

    def finish(self, task: int, host: int) -> float:
        return max(self.left[host], self.arrival(task, self.place[host])) + self.seconds(task, host)

    def rank(self, task: int) -> tuple[int, float, float, int]:
        """Level, least traffic, longer run time first, number."""
        traffic = min((self.bytes_lacking(task, self.place[h]) for h in self.hosts), default=0.0)
        mean = sum(self.seconds(task, h) for h in self.hosts) / len(self.hosts)
        return int(self.view.graph.level[task]), traffic, -mean, task

    def placed(self) -> list[tuple[int, int]]:
        """Figure 5: (task, host) in the order in which they are appended to queues."""
        answers = []
        for task in sorted(self.view.ready().tolist(), key=self.rank):
            able = [h for h in self.hosts if self.cores[h] >= self.view.graph.cores[task]]
            holders = [h for h in able if self.bytes_lacking(task, self.place[h]) == 0]
            if self.inputs(task) and holders:
                able = holders
            if able:
                best = min(able, key=lambda h: (self.finish(task, h), h))
                self.left[best] += (
                    self.seconds(task, best) * int(self.view.graph.cores[task]) / self.cores[best]
                )
                answers.append((task, best))
        return answers

    def moved(self) -> list[tuple[int, int]]:
        """(task, host) of tasks that idle hosts take from the tail of the queue that takes longest.

        It must pay even if the way takes twice as long as on free links.
        """
        view = self.view
        self.left = {h: self._left(h, late_weight=1.0) for h in self.hosts}
        queues = {h: view.queue(h) for h in self.hosts}
        busy = {h: int(view.state.busy_cores[h]) for h in self.hosts}
        answers: list[tuple[int, int]] = []
        for host in [h for h in self.hosts if not queues[h]]:
            free = self.cores[host] - busy[host]
            while free > 0:
                long = [h for h in self.hosts if queues[h] and len(queues[h]) + busy[h] > self.cores[h]]
                if not long:
                    return answers
                longest = max(long, key=lambda h: (self.left[h], -h))
                task = queues[longest][-1]
                here = 2.0 * self.arrival(task, self.place[host]) + self.seconds(task, host)
                if view.graph.cores[task] > free or here >= self.left[longest]:
                    break
                answers.append((queues[longest].pop(), host))
                free -= int(view.graph.cores[task])
                self.left[longest] -= float(view.state.predicted[task]) / self.cores[longest]
        return answers
