"""Brute force over small problems without contention: every order, every placement."""

from __future__ import annotations

from headrace.core.scheduler import Problem
from headrace.model.graph import OUTSIDE
from headrace.model.network import EVERYWHERE


def best_makespan(problem: Problem) -> float:
    """The optimum: some order in which tasks are appended to hosts gives every left-shifted schedule."""
    return _Search(problem).best()


class _Search:
    def __init__(self, problem: Problem) -> None:
        assert problem.platform.contention == "none"
        self.graph = problem.graph
        self.network = problem.platform.network
        self.hosts = problem.platform.hosts
        self.rates = problem.platform.rates(self.graph)
        self.found = float("inf")
        self.finish: dict[int, float] = {}
        self.at: dict[int, int] = {}

    def best(self) -> float:
        self._extend([[0.0] * h.cores for h in self.hosts], 0.0)
        return self.found

    def _extend(self, free: list[list[float]], latest: float) -> None:
        if latest >= self.found:
            return
        if len(self.finish) == self.graph.n_tasks:
            self.found = latest
            return
        for task in range(self.graph.n_tasks):
            reads = self.graph.reads_of(task).tolist()
            makers = [self.graph.producer[i] for i in reads]
            if task in self.finish or any(m != OUTSIDE and m not in self.finish for m in makers):
                continue
            for host in range(len(self.hosts)):
                self._place(task, host, free, latest)

    def _place(self, task: int, host: int, free: list[list[float]], latest: float) -> None:
        place = int(self.network.host_place[host])
        ready = max((self._arrival(i, place) for i in self.graph.reads_of(task).tolist()), default=0.0)
        core = min(range(len(free[host])), key=lambda c: free[host][c])
        before = free[host][core]
        end = max(ready, before) + self.graph.work[task] / self.rates[self.graph.speed_class[task], host]
        back = end
        for item in self.graph.writes_of(task).tolist():
            if self.graph.result[item] and self.network.origin != EVERYWHERE:
                way = self.network.seconds(place, self.network.origin, self.graph.size[item])
                back = max(back, end + way)
        self.finish[task], self.at[task], free[host][core] = end, place, end
        self._extend(free, max(latest, back))
        del self.finish[task], self.at[task]
        free[host][core] = before

    def _arrival(self, item: int, place: int) -> float:
        """Straight from where the item was made; copies on the way never help without contention here."""
        size, maker = self.graph.size[item], int(self.graph.producer[item])
        if maker != OUTSIDE:
            return self.finish[maker] + self.network.seconds(self.at[maker], place, size)
        origin = self.network.origin
        return 0.0 if origin == EVERYWHERE else self.network.seconds(origin, place, size)
