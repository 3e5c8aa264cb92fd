"""Sites that a program names for its items: initial locations and destinations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headrace.model.errors import BadProgram

if TYPE_CHECKING:
    from headrace.model.graph import Graph
    from headrace.model.platform import Platform


def _none() -> NDArray[np.int32]:
    return np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class SiteLists:
    """A list of site (or host) names for each item: item i has names[index[ptr[i]:ptr[i + 1]]].

    >>> lists = SiteLists.of_items({1: ("b", "a")}, 3)
    >>> lists.of(1), lists.of(0), lists.given.tolist()
    (('b', 'a'), (), [False, True, False])
    """

    names: tuple[str, ...] = ()
    ptr: NDArray[np.int32] = field(default_factory=_none)
    index: NDArray[np.int32] = field(default_factory=_none)

    @staticmethod
    def of_items(sites: Mapping[int, Sequence[str]], items: int) -> SiteLists:
        """Build from a mapping of item numbers to site names."""
        number: dict[str, int] = {}
        ptr = np.zeros(items + 1, np.int32)
        index: list[int] = []
        for item in sorted(sites):
            listed = dict.fromkeys(sites[item])
            index.extend(number.setdefault(name, len(number)) for name in listed)
            ptr[item + 1] = len(listed)
        return SiteLists(tuple(number), np.cumsum(ptr, dtype=np.int32), np.array(index, np.int32))

    @property
    def given(self) -> NDArray[np.bool_]:
        """Which items have at least one name."""
        some: NDArray[np.bool_] = np.diff(self.ptr) > 0
        return some

    def of(self, item: int) -> tuple[str, ...]:
        return tuple(self.names[i] for i in self.index[self.ptr[item] : self.ptr[item + 1]].tolist())

    def places_by_item(self, graph: Graph, platform: Platform) -> dict[int, tuple[int, ...]]:
        """The places of each item that has at least one."""
        places = self.places(graph, platform).tolist()
        return {i: tuple(places[self.ptr[i] : self.ptr[i + 1]]) for i in np.flatnonzero(self.given).tolist()}

    def places(self, graph: Graph, platform: Platform) -> NDArray[np.int32]:
        """The place of each entry of `index`; raises an error for names that the platform does not have."""
        known = platform.place_of
        for n, name in enumerate(self.names):
            if name not in known:
                entry = int(np.flatnonzero(self.index == n)[0])
                item = int(np.searchsorted(self.ptr, entry, side="right")) - 1
                raise BadProgram(
                    f"item {graph.item_names[item]!r} names {name!r}, which is neither a site nor a host",
                    where=f"{graph.name} on {platform.name}",
                    hint=f"name one of {', '.join(s.name for s in platform.sites[:8])}",
                )
        number = np.array([known[name] for name in self.names], np.int32)
        return number[self.index] if len(number) else _none()
