"""Where every item is, by the engine's own `who_has`: what the coordinator has not heard, it is told.

A task that ends reports what arrived for it. Everything else that moves or vanishes is found here: data of tasks that
still run, copies made by others, copies that a worker has lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from headrace.model.events import CopyLost, DataMoved, Event

if TYPE_CHECKING:
    from headrace.core.coordinator import Coordinator
    from headrace.runtime.graph import Key, Layout


class CopyIndex:
    """Compares the engine's copies of items that tasks make with those that the coordinator knows."""

    def __init__(
        self, scheduler: Any, layout: Layout, coordinator: Coordinator, host_at: Mapping[str, str]
    ) -> None:
        self.scheduler = scheduler
        self.coordinator = coordinator
        self.host_at = host_at
        graph = coordinator.view.graph
        key_of = {name: key for key, name in layout.tasks.items()}
        self.item_of: dict[Key, str] = {}
        """The item of each key that holds what a task made."""
        self.whole: dict[str, Key] = {}
        """The key of the task that makes each item: before outputs are split, it holds all of them."""
        number = {name: i for i, name in enumerate(graph.item_names)}
        for key, item in layout.items.items():
            producer = int(graph.producer[number[item]])
            if producer >= 0:
                self.item_of[key] = item
                self.whole[item] = key_of[graph.task_names[producer]]
        self.key_of = {item: key for key, item in self.item_of.items()}
        self.loading: Mapping[Key, Any] = {}
        """Keys that are about to be on a host, because it loads them."""

    def _places(self, item: str) -> set[str]:
        """The places that have an item, or the outputs of its task before they are split, by the engine."""
        found: set[str] = set()
        for key in (self.key_of[item], self.whole[item]):
            state = self.scheduler.tasks.get(key)
            if state is not None and state.who_has:
                found.update(self._place(worker.address) for worker in state.who_has)
        load = self.loading.get(self.key_of[item])
        if load is not None:
            found.add(self.place(load.host))
        return found - {""}

    def _place(self, address: str) -> str:
        """Where a worker keeps its data; "" for one that is no host of this run."""
        return self.place(self.host_at.get(address, ""))

    def place(self, host: str) -> str:
        """Where a host keeps its data; "" if it does not belong to this run."""
        view = self.coordinator.view
        number = view.host_number.get(host, -1)
        return "" if number < 0 else view.platform.network.place_names[int(view.static.host_place[number])]

    def arrived(self, keys: Iterable[Key], address: str, now: float) -> list[Event]:
        """Copies at a worker of which the coordinator does not know."""
        place = self._place(address)
        if not place:
            return []
        items = [self.item_of[key] for key in keys if key in self.item_of]
        return [self._moved(item, place, now) for item in items if place not in self._known(item)]

    def compare(self, now: float) -> list[Event]:
        """All differences: copies that the coordinator does not know of, then copies that are gone. O(copies)."""
        found: list[Event] = []
        gone: list[Event] = []
        view, all_known = self.coordinator.view, self.known()
        for item in self.key_of:
            number = view.item_number[item]
            if not view.done[view.graph.producer[number]]:
                continue
            there, known = self._places(item), all_known.get(number, set())
            found += [self._moved(item, place, now) for place in sorted(there - known)]
            gone += [CopyLost(now, item, place) for place in sorted(known - there)]
        return [*found, *gone]

    def known(self) -> dict[int, set[str]]:
        """The reachable places of each item's copies, as the coordinator knows them. O(copies)."""
        view = self.coordinator.view
        names, up = view.platform.network.place_names, view.state.place_up
        places: dict[int, set[str]] = {}
        for item, place in zip(*(column.tolist() for column in view.copies()), strict=True):
            if up[place]:
                places.setdefault(item, set()).add(names[place])
        return places

    def _known(self, item: str) -> set[str]:
        view = self.coordinator.view
        names = view.platform.network.place_names
        return {names[place] for place in view.places_of(view.item_number[item])}

    def _moved(self, item: str, place: str, now: float) -> DataMoved:
        return DataMoved(now, item, min(self._known(item), default=place), place, now, 0.0)


class Listening:
    """Calls of one of the scheduler's handlers of messages from workers, heard by any number of runs.

    A listener is called before the handler, with the message; if it returns True, the handler is not called.
    """

    def __init__(self, scheduler: Any, operation: str, listener: Callable[..., bool]) -> None:
        self.handlers = scheduler.stream_handlers
        self.operation, self.listener = operation, listener
        handler = self.handlers[operation]
        if not isinstance(handler, _Heard):
            handler = self.handlers[operation] = _Heard(handler)
        handler.listeners.append(listener)

    def stop(self) -> None:
        """Listen no more; the last one puts the handler back."""
        handler = self.handlers[self.operation]
        if isinstance(handler, _Heard) and self.listener in handler.listeners:
            handler.listeners.remove(self.listener)
            if not handler.listeners:
                self.handlers[self.operation] = handler.handler


class _Heard:
    def __init__(self, handler: Callable[..., Any]) -> None:
        self.handler = handler
        self.listeners: list[Callable[..., bool]] = []

    def __call__(self, **message: Any) -> Any:
        for listener in list(self.listeners):
            if listener(**message):
                return None
        return self.handler(**message)
