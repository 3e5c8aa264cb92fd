"""Location and reachability of copies, and storage use of sites, in a run that is being checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.model.graph import OUTSIDE, Floats, Graph
from headrace.model.network import EVERYWHERE
from headrace.model.platform import Platform


class Copies:
    """Places of each item, updated from the log."""

    def __init__(self, graph: Graph, platform: Platform, size: Floats) -> None:
        self.graph, self.size = graph, size
        network = platform.network
        self.site = network.site.tolist()
        self.origin = int(network.origin)
        self.up = [True] * network.n_places
        self.used = [0.0] * len(network.storage)
        self.places: list[set[int]] = [set() for _ in range(graph.n_items)]
        self.destinations = graph.destinations.places_by_item(graph, platform)
        initial_locations = graph.initial_locations.places_by_item(graph, platform)
        outside = (graph.producer == OUTSIDE) & (graph.size > 0)
        self.everywhere = [
            bool(outside[i]) and i not in initial_locations and self.origin == EVERYWHERE
            for i in range(graph.n_items)
        ]
        for item in outside.nonzero()[0].tolist():
            for place in initial_locations.get(item, () if self.origin == EVERYWHERE else (self.origin,)):
                self.add(item, place)

    def needs_none(self, item: int) -> bool:
        """Whether an item needs no copies: it is available everywhere once it exists."""
        return bool(self.graph.size[item] == 0) or self.everywhere[item]

    def at(self, item: int, place: int) -> bool:
        """Whether a reachable place holds an item."""
        return self.needs_none(item) or (place in self.places[item] and self.up[place])

    def add(self, item: int, place: int) -> None:
        if not self.needs_none(item) and place not in self.places[item]:
            self.places[item].add(place)
            self.used[self.site[place]] += float(self.size[item])

    def drop(self, item: int, place: int) -> None:
        if place in self.places[item]:
            self.places[item].remove(place)
            self.used[self.site[place]] -= float(self.size[item])

    def reserve(self, place: int, size: float) -> None:
        """Reserve bytes that are being produced at or sent to a place."""
        self.used[self.site[place]] += size

    def place_gone(self, place: int, *, wiped: bool) -> None:
        """A place becomes unreachable; if `wiped`, its contents are lost permanently."""
        self.up[place] = False
        if wiped:
            for item in range(self.graph.n_items):
                self.drop(item, place)

    def place_back(self, place: int) -> None:
        self.up[place] = True

    def is_lost(self, item: int) -> bool:
        """Whether no copy is reachable."""
        return not self.needs_none(item) and not any(self.up[p] for p in self.places[item])

    def elsewhere(self, item: int, place: int) -> bool:
        """Whether another reachable place holds an item."""
        return any(self.up[p] for p in self.places[item] if p != place)

    def is_delivered(self, item: int, place: int) -> bool:
        """Whether a place is the only one of those where a task's result has to be that has it."""
        if self.graph.producer[item] == OUTSIDE:
            return False
        if item in self.destinations:
            return self.places[item].intersection(self.destinations[item]) == {place}
        return bool(self.graph.result[item]) and place == self.origin

    def unused(self, site: int, in_use: Callable[[int, int], bool]) -> float:
        """Bytes of the copies at a site of which `in_use` is false."""
        return sum(
            float(self.size[item])
            for item, places in enumerate(self.places)
            for place in places
            if self.site[place] == site and not in_use(item, place)
        )

    def must_be_kept(self, item: int) -> bool:
        """Whether it is a task's result that is not (or no longer) at its destination."""
        if self.graph.producer[item] == OUTSIDE or self.graph.size[item] == 0:
            return False
        if item in self.destinations:
            return not any(self.at(item, place) for place in self.destinations[item])
        if not self.graph.result[item]:
            return False
        return self.is_lost(item) if self.origin == EVERYWHERE else not self.at(item, self.origin)

    def undelivered(self) -> list[int]:
        return [item for item in range(self.graph.n_items) if self.must_be_kept(item)]

    def over_full(self, storage: Floats, share: float) -> Iterator[tuple[int, float]]:
        """Sites that exceed their storage, and how much they hold."""
        for site, used in enumerate(self.used):
            if used > storage[site] * (1.0 + share) + share:
                yield site, used
