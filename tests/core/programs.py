"""Small programs, events and schedulers that several tests of the coordinator use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.core.coordinator import Coordinator
from headrace.core.scheduler import EVERY_EVENT, Command, WakeConditions
from headrace.core.view import RunView
from headrace.model.events import DataMoved, Event, TaskFinished
from headrace.model.program import Program


class Told:
    """Answers what it is told to answer next, and remembers when it was asked and about what."""

    name = "told"

    def __init__(self, *answers: Sequence[Command], wake: WakeConditions = EVERY_EVENT) -> None:
        self.answers = list(answers)
        self.wake = wake
        self.seen: list[tuple[float, list[Event]]] = []

    def react(self, view: RunView, events: Sequence[Event]) -> Sequence[Command]:
        self.seen.append((view.time, list(events)))
        return self.answers.pop(0) if self.answers else []


def chain() -> Program:
    """a -> b -> c, and d which reads what a made."""
    program = Program("chain")
    x = program.input("x", size=5)
    y = program.task(name="a", inputs=[x], outputs={"y": 10}, work=1.0)
    z = program.task(name="b", inputs=[y], outputs={"z": 20}, work=2.0, kind="fft")
    program.task(name="c", inputs=[z, x], outputs={"w": 30}, work=3.0)
    program.task(name="d", inputs=[y], outputs={"v": 40}, work=4.0)
    return program


def finished(task: str, host: str, time: float = 1.0) -> TaskFinished:
    return TaskFinished(time, task, host, 0.0)


def moved(item: str, source: str, target: str, time: float = 1.0) -> DataMoved:
    return DataMoved(time, item, source, target, 0.0, 1.0)


def undone(coordinator: Coordinator) -> list[str]:
    """Names of the tasks that have not ended, or have to run again."""
    view = coordinator.view
    return [name for name, done in zip(view.graph.task_names, view.done, strict=True) if not done]


def validated(coordinator: Coordinator) -> Callable[[Sequence[Event]], list[object]]:
    """`handle`, with the state validated after it."""

    def handle(events: Sequence[Event]) -> list[object]:
        answer: list[object] = list(coordinator.handle(events))
        coordinator.validate_state()
        return answer

    return handle
