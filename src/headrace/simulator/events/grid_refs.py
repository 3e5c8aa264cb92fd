"""References to the simulated grid for compiled code; see core.records."""

from __future__ import annotations

from typing import Any

from numba import config
from numba.experimental import structref

from headrace.arrays.compiling import entry
from headrace.arrays.references import Reference, register
from headrace.simulator.events.grid_state import GridState


@register
class WorldType(Reference):
    pass


class WorldRef(structref.StructRefProxy):  # type: ignore[misc]
    """A `GridState` for compiled code."""


structref.define_constructor(WorldRef, WorldType, list(GridState._fields))
structref.define_boxing(WorldType, WorldRef)


@entry
def _world_ref(grid: Any) -> Any:
    return WorldRef(*grid)


def grid_ref(grid: GridState) -> Any:
    """The grid as a reference for compiled code; the record itself if compilation is disabled."""
    return grid if config.DISABLE_JIT else _world_ref(grid)
