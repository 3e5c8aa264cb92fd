"""The program of the demo: a mosaic of image tiles, really computed with numpy.

In every round the tiles are sharpened side by side and then blended, and the next round needs the blend: a
slow machine with too many tiles holds everybody up. Next to the rounds runs a chain of calibration steps,
each needing the one before, that the last task waits for: whoever starts it late or on a slow machine ends
late.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.model.program import Program

Image = NDArray[np.float32]

TILES = 8
ROUNDS = 10
CHAIN = 12
SIDE = 768
_BYTES = SIDE * SIDE * 4


def smooth(image: Image, times: int) -> Image:
    """Let each pixel follow its neighbours, small differences more than large ones, again and again."""
    for _ in range(times):
        around = np.roll(image, 1, 0) + np.roll(image, -1, 0) + np.roll(image, 1, 1)
        image = image + np.tanh(around - np.float32(3.0) * image)
    return image


def cut(number: int) -> Image:
    """One tile of the sky: noise with a few bright stars."""
    random = np.random.default_rng(number)
    tile = random.normal(100.0, 10.0, (SIDE, SIDE)).astype(np.float32)
    tile[random.integers(0, SIDE, 40), random.integers(0, SIDE, 40)] += 4000.0
    return tile


def sharpen(tile: Image, blend: Image) -> Image:
    """Take out what neighbours have in common and bring out the rest."""
    sharper: Image = tile + np.float32(0.1) * (tile - smooth(tile, 24)) - np.float32(0.05) * blend
    return sharper


def blended(*tiles: Image) -> Image:
    """The level common to all tiles."""
    return smooth(np.minimum.reduce(tiles), 1)


def calibrate(before: Image) -> Image:
    """One step towards a flat field."""
    after: Image = np.sqrt(np.abs(smooth(before, 20)) + np.float32(1.0))
    return after


def mosaic(field: Image, *tiles: Image) -> Image:
    """All tiles side by side, divided by the flat field."""
    whole: Image = np.concatenate([tile / field for tile in tiles], axis=1)
    return whole


def demo_program() -> Program:
    """About 100 tasks, each first taken for a second of work."""
    program = Program("mosaic")

    def add(body: Callable[..., Any], inputs: list[Any], name: str, size: int = _BYTES) -> Any:
        return program.task(body, inputs=inputs, outputs={f"{name}.out": size}, name=name, kind=body.__name__)

    tiles = [add(cut, [program.input(f"number{i}", value=i)], f"cut{i}") for i in range(TILES)]
    for number in range(ROUNDS):
        blend = add(blended, tiles, f"blend{number}")
        tiles = [add(sharpen, [tile, blend], f"sharpen{number}.{i}") for i, tile in enumerate(tiles)]
    field = add(cut, [program.input("chart", value=1000)], "chart")
    for step in range(CHAIN):
        field = add(calibrate, [field], f"calibrate{step}")
    program.output(add(mosaic, [field, *tiles], "mosaic", _BYTES * TILES))
    return program


def try_each_kind() -> None:
    """Do one task of each kind, so that everything is loaded before anything is measured."""
    tile = cut(0)
    sharpen(tile, tile)
    blended(*[tile] * TILES)
    calibrate(tile)
    mosaic(tile, *[tile] * TILES)
