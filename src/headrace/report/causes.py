"""Why a task ended late: the chain of causes, from its own bar back to where the delay arose.

An activity (an execution or a transfer) that ended later than planned is late for up to three reasons: it took longer
itself, what it waited for ended late, or something held it up that the plan did not have (a host that left, another
task on its host, a busy link, another host than planned, the engine). What it waited for is late for reasons of its
own, and so on back to the start of the run. The root of a chain is the reason that contributed most to the delay.
A delay counts at most as much as was passed on along the chain: what slack has absorbed does not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from headrace.model.events import Event
from headrace.model.plan import Plan, PlannedTask
from headrace.model.units import show_size, show_time
from headrace.report.timeline import Activity, Timeline, Wait

Reason = Literal["compute", "size", "link", "fault", "queue", "moved", "overhead", "inherited"]
"""compute, size: a task took longer, an item was larger than estimated; link: a transfer took longer, or waited for
another; queue: the host ran another task; moved: it was planned elsewhere; overhead: the engine; inherited: what it
waited for was late."""
_RECENT = 64
"""Tasks of a host, those that started last, among which the one is looked for that held up another."""
_NOTABLE = 1e-3
"""Share of the makespan by which an activity must be late to have a cause."""


class Step(NamedTuple):
    """One link of a chain."""

    activity: int
    """Number in the timeline of the run."""
    reason: Reason
    seconds: float
    """How much of the delay arose here; for an inherited delay, how much was passed on."""
    text: str


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an activity was late: what arose at it, and what it inherited from `before` (-1: nothing)."""

    late: float
    own: Step
    inherited: Step | None
    before: int
    effect: float
    """Seconds of delay due to the root of its chain."""

    @property
    def is_root(self) -> bool:
        return self.inherited is None


class Causes:
    """The causes of all late activities of a run: O(n log n).

    >>> import headrace as hr
    >>> from headrace.model.events import TaskFinished
    >>> program = hr.Program()
    >>> first = program.task(None, name="a", work=2.0, outputs={"x": 1e6})
    >>> second = program.task(None, name="b", inputs=[first], work=1.0)
    >>> plan = hr.plan(program, hr.Platform.pairwise([1.0], bandwidth=1e6))
    >>> causes = Causes(plan, [TaskFinished(5.0, "a", "h0", 0.0), TaskFinished(6.0, "b", "h0", 5.0)])
    >>> print("; ".join(step.text for step in causes.chain("b")))
    b waited for a, which ended 3 s late; a took 5 s on h0 instead of 2 s (2.5x)
    """

    def __init__(self, plan: Plan, events: Iterable[Event]) -> None:
        self.plan = plan
        self.planned = Timeline.of_plan(plan)
        self.run = Timeline.of_events(events, plan.graph, plan.platform)
        self._tasks = {task.id: task for task in plan.tasks()}
        self._rates = plan.platform.rates(plan.graph)
        self._hosts = {host.name: number for number, host in enumerate(plan.platform.hosts)}
        self._size = dict(zip(plan.graph.item_names, plan.graph.size.tolist(), strict=True))
        self._maker = dict(zip(plan.graph.item_names, plan.graph.producer.tolist(), strict=True))
        self.tolerance = _NOTABLE * max(self.run.end, plan.makespan)
        self.causes: list[Cause | None] = [None] * len(self.run.activities)
        self.waits = list(self.run.waits)
        self._started: dict[str, list[int]] = {}
        done = self.run.activities
        for i in sorted(range(len(done)), key=lambda n: (done[n].start, done[n].finish, n)):
            self.waits[i] = self._delaying(i)
            self.causes[i] = self._cause(i)
            if done[i].is_task:
                self._started.setdefault(done[i].place, []).append(i)

    def chain(self, task: str | int) -> list[Step]:
        """The steps from a late task, or activity, to its root; empty if it was not late."""
        at = self.run.last(task) if isinstance(task, str) else task
        steps: list[Step] = []
        while at >= 0 and (cause := self.causes[at]) is not None:
            steps.append(cause.own if cause.inherited is None else cause.inherited)
            at = -1 if cause.is_root else cause.before
        return steps

    def root(self, task: str | int) -> Step | None:
        """Where the delay of a task arose; None if it was not late."""
        steps = self.chain(task)
        return steps[-1] if steps else None

    def lateness(self, i: int) -> float:
        """Seconds by which an activity ended later than planned.

        A transfer that was not planned should have ended as soon as its item could have been there.
        """
        done = self.run.activities[i]
        if done.is_task:
            return done.finish - self._tasks[done.name].finish
        match = self._planned_move(done)
        if match is not None:
            return done.finish - match.finish
        maker = self._maker.get(done.name, -1)
        made = float(self.plan.finish[maker]) if maker >= 0 else 0.0
        return done.finish - made - self._expected(done)

    def _planned_move(self, move: Activity) -> Activity | None:
        """The planned transfer of this item to this place; the last one if there are several."""
        found = self.planned.arrivals.get((move.name, move.place))
        return self.planned.activities[found[-1]] if found else None

    def _expected(self, done: Activity) -> float:
        """How long an activity should have taken where it was."""
        if done.is_task:
            planned = self._tasks[done.name]
            if planned.host == done.place or done.place not in self._hosts:
                return planned.finish - planned.start
            task = self.run.number_of(done.name)
            graph = self.plan.graph
            return float(graph.work[task] / self._rates[graph.speed_class[task], self._hosts[done.place]])
        match = self._planned_move(done)
        if match is not None and match.source == done.source:
            return match.seconds
        places = self.plan.platform.place_of
        if done.source not in places or done.place not in places:
            return done.seconds
        size = self._size.get(done.name, 0.0)
        return self.plan.platform.network.seconds(places[done.source], places[done.place], size)

    def _delaying(self, i: int) -> Wait:
        """What an activity waited for, as far as the plan goes.

        A host of several cores may have been full because of another task than the one that ended last, and tasks start
        in their planned order: one that is ready waits behind one that is not.
        """
        done, wait = self.run.activities[i], self.run.waits[i]
        if not done.is_task or done.start <= self._tasks[done.name].start + self.tolerance:
            return wait
        recent = self._started.get(done.place, [])[-_RECENT:]
        ready = self.run.activities[wait.before].finish if wait.before >= 0 else 0.0
        if done.start - ready > self.tolerance:
            ahead = [n for n in recent if self.run.activities[n].start >= done.start - self.run.slack]
            return self.waits[ahead[-1]] if ahead else wait
        if wait.kind == "host" and self.lateness(wait.before) <= self.tolerance:
            stayed = [(self._overstay(n, done), n) for n in recent]
            longest, n = max(stayed, default=(0.0, -1))
            return Wait("host", n) if longest > self.tolerance else wait
        return wait

    def _overstay(self, n: int, waiting: Activity) -> float:
        """Seconds that an execution was on its host after its planned end while another should have run there."""
        other = self.run.activities[n]
        due = max(self._tasks[other.name].finish, self._tasks[waiting.name].start)
        return min(other.finish, waiting.start) - due

    def _cause(self, i: int) -> Cause | None:
        late = self.lateness(i)
        displaced = self._displaced(i)
        if late <= self.tolerance and displaced is None:
            return None
        done, wait = self.run.activities[i], self.waits[i]
        longer = min(max(done.seconds - self._expected(done), 0.0), max(late, 0.0))
        delay = max(late - longer, 0.0)
        passed, effect = self._passed(i, delay)
        if displaced is not None:
            left, host = displaced
            again = self.run.executions[done.name][0] != i
            what = "had run" if again else "was planned"
            text = f"{done.name} {what} on {host}, which left at {show_time(left)}"
            return Cause(late, Step(i, "fault", late, text), None, -1, max(late, self.run.end - left))
        held = self._held_up(i, delay - passed)
        own = max((self._took_longer(i, longer), held), key=lambda step: step.seconds)
        if wait.before < 0 or own.seconds >= effect:
            return Cause(late, own, None, -1, own.seconds)
        inherited = Step(i, "inherited", passed, self._inherited_text(i))
        return Cause(late, own, inherited, wait.before, effect)

    def _passed(self, i: int, delay: float) -> tuple[float, float]:
        """Seconds of delay that came from what an activity waited for, and how many are due to the root of that."""
        wait = self.waits[i]
        cause = self.causes[wait.before] if wait.before >= 0 else None
        if cause is None:
            return 0.0, 0.0
        if cause.own.reason == "fault" and wait.kind in ("host", "link"):
            return delay, delay  # it would not have been there
        passed = min(max(cause.late, 0.0), delay)
        return passed, min(passed, cause.effect)

    def _displaced(self, i: int) -> tuple[float, str] | None:
        """When which host left, if that is why an execution was where and when it was."""
        done = self.run.activities[i]
        if not done.is_task:
            return None
        first = self.run.activities[self.run.executions[done.name][0]]
        gone = {first.place} if first != done else set()
        if self._tasks[done.name].host != done.place:
            gone.add(self._tasks[done.name].host)
        return next(
            ((t, host) for t, host in self.run.left if host in gone and t <= done.start + self.run.slack),
            None,
        )

    def _took_longer(self, i: int, seconds: float) -> Step:
        done = self.run.activities[i]
        took, expected = show_time(done.seconds), self._expected(done)
        times = f" ({done.seconds / expected:.1f}x)" if expected > 0 else ""
        if done.is_task:
            text = f"{done.name} took {took} on {done.place} instead of {show_time(expected)}{times}"
            return Step(i, "compute", seconds, text)
        estimate = self._size.get(done.name, 0.0)
        if done.size > 1.02 * estimate:
            text = f"{done.name} was {show_size(done.size)} instead of {show_size(estimate)}"
            return Step(i, "size", seconds, f"{text}: {took} from {done.source} to {done.place}")
        route = f"from {done.source} to {done.place}"
        return Step(i, "link", seconds, f"{done.name} took {took} {route} instead of {show_time(expected)}")

    def _held_up(self, i: int, seconds: float) -> Step:
        """What held an activity up, other than the delay of what it waited for."""
        done, wait = self.run.activities[i], self.waits[i]
        before = self.run.activities[wait.before] if wait.before >= 0 else None
        ready = 0.0 if before is None else before.finish
        moved = done.is_task and self._tasks[done.name].host != done.place
        gap = done.start - ready > seconds / 2
        left = [(t, host) for t, host in self.run.left if t <= done.start + self.run.slack]
        if left and (moved or gap or (before is not None and not self._as_planned(done, before))):
            t, host = left[-1]
            return Step(
                i, "fault", seconds, f"{done.name} was planned again after {host} left at {show_time(t)}"
            )
        if moved:
            text = f"{done.name} ran on {done.place} instead of {self._tasks[done.name].host}"
            return Step(i, "moved", seconds, text)
        if before is None or gap:
            return Step(i, "overhead", seconds, f"{done.name} could have started at {show_time(ready)}")
        if wait.kind == "host":
            return Step(i, "queue", seconds, f"{done.place} ran {before.name} before {done.name}")
        if wait.kind == "link":
            return Step(i, "link", seconds, f"the link carried {before.name} before {done.name}")
        return Step(i, "moved", seconds, f"{done.name} came from {before.place}, which was not planned")

    def _as_planned(self, done: Activity, before: Activity) -> bool:
        """Whether an activity was planned after what it waited for, on the same host if that is a task."""
        if not (done.is_task and before.is_task):
            return True
        one, other = self._tasks[before.name], self._tasks[done.name]
        return one.host == before.place and one.finish <= other.start + self.run.slack

    def _inherited_text(self, i: int) -> str:
        done, wait = self.run.activities[i], self.waits[i]
        before = self.run.activities[wait.before]
        late = self.lateness(wait.before)
        ended = (
            f"which ended {show_time(late)} late" if late > self.tolerance else "which was not planned there"
        )
        if wait.kind == "transfer":
            return f"{done.name} waited for {before.name} from {before.source}, {ended}"
        if wait.kind == "link":
            return f"{done.name} waited for the link, which carried {before.name} to {before.place}, {ended}"
        if wait.kind == "host":
            return f"{done.name} waited for {done.place}, which ran {before.name}, {ended}"
        return f"{done.name} waited for {before.name}, {ended}"

    def planned_task(self, task: str) -> PlannedTask:
        """What the plan says about a task."""
        return self._tasks[task]
