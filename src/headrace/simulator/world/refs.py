"""The simulated grid as compiled code holds it; see core.kernels.refs."""

from __future__ import annotations

from typing import Any

from numba import config, types
from numba.experimental import structref

from headrace.arrays.compiling import entry
from headrace.simulator.world.state import World


@structref.register
class WorldType(types.StructRef):  # type: ignore[misc]
    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class WorldRef(structref.StructRefProxy):  # type: ignore[misc]
    """A `World` for compiled code."""


structref.define_constructor(WorldRef, WorldType, list(World._fields))
structref.define_boxing(WorldType, WorldRef)


@entry
def _world_ref(world: Any) -> Any:
    return WorldRef(*world)


def world_ref(world: World) -> Any:
    """The world for compiled code; itself where nothing is compiled."""
    return world if config.DISABLE_JIT else _world_ref(world)
