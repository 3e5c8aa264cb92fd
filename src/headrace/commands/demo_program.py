"""The program of the demo: a mosaic of image tiles, really computed with numpy.

Tiles are cut and denoised side by side, joined to find a common background, corrected side by side and
stitched. Next to them runs a chain of calibration steps, each needing the one before, that the last step
waits for: whoever starts the chain late or on a slow machine finishes late.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.model.program import Program

Image = NDArray[np.float32]

TILES = 28
ROWS = 4
CHAIN = 12
SIDE = 768
_BYTES = SIDE * SIDE * 4


def smooth(image: Image, times: int) -> Image:
    """Average each pixel with its neighbours, again and again."""
    for _ in range(times):
        image = (image + np.roll(image, 1, 0) + np.roll(image, -1, 0) + np.roll(image, 1, 1)) * np.float32(
            0.25
        )
    return image


def cut(number: int) -> Image:
    """One tile of the sky: noise with a few bright stars."""
    random = np.random.default_rng(number)
    tile = random.normal(100.0, 10.0, (SIDE, SIDE)).astype(np.float32)
    tile[random.integers(0, SIDE, 40), random.integers(0, SIDE, 40)] += 4000.0
    return tile


def denoise(tile: Image) -> Image:
    return smooth(tile, 40)


def background(*tiles: Image) -> Image:
    """The level common to all tiles."""
    return smooth(np.minimum.reduce(tiles), 2)


def correct(tile: Image, level: Image) -> Image:
    above: Image = np.clip(tile - level, 0.0, 255.0)
    return smooth(above, 30)


def calibrate(before: Image) -> Image:
    after: Image = np.sqrt(smooth(before, 60) + np.float32(1.0))
    return after


def stitch(*tiles: Image) -> Image:
    return np.concatenate([tile[::2, ::2] for tile in tiles], axis=1)


def mosaic(calibration: Image, *strips: Image) -> Image:
    whole = np.concatenate(strips, axis=0)
    scaled: Image = whole * calibration.mean()
    return scaled


def demo_program(work: dict[str, float] | None = None) -> Program:
    """About 100 tasks; `work` gives the run time of each kind on a host of speed 1."""
    work = work or {}
    program = Program("mosaic")

    def add(body: Callable[..., Any], inputs: list[Any], name: str, size: int = _BYTES) -> Any:
        kind = body.__name__
        return program.task(
            body, inputs=inputs, outputs={f"{name}.out": size}, name=name, kind=kind, work=work.get(kind, 1.0)
        )

    numbers = [program.input(f"number{i}", value=i) for i in range(TILES)]
    tiles = [add(denoise, [add(cut, [n], f"cut{i}")], f"denoise{i}") for i, n in enumerate(numbers)]
    level = add(background, tiles, "background")
    corrected = [add(correct, [tile, level], f"correct{i}") for i, tile in enumerate(tiles)]
    per_row = TILES // ROWS
    strips = [
        add(stitch, corrected[r * per_row : (r + 1) * per_row], f"stitch{r}", _BYTES * per_row // 4)
        for r in range(ROWS)
    ]
    chain = add(cut, [program.input("chart", value=1000)], "chart.cut")
    for step in range(CHAIN):
        chain = add(calibrate, [chain], f"calibrate{step}")
    program.output(add(mosaic, [chain, *strips], "mosaic", _BYTES * TILES // 4))
    return program


def try_each_kind() -> dict[str, float]:
    """CPU seconds of one task of each kind on this machine, the second of two tries."""
    from time import thread_time

    tile = cut(0)
    tries: dict[str, Callable[[], Any]] = {
        "cut": lambda: cut(1),
        "denoise": lambda: denoise(tile),
        "background": lambda: background(*[tile] * TILES),
        "correct": lambda: correct(tile, tile),
        "calibrate": lambda: calibrate(tile),
        "stitch": lambda: stitch(*[tile] * (TILES // ROWS)),
        "mosaic": lambda: mosaic(tile, *[stitch(*[tile] * (TILES // ROWS))] * ROWS),
    }
    seconds = {}
    for kind, attempt in tries.items():
        attempt()
        began = thread_time()
        attempt()
        seconds[kind] = thread_time() - began
    return seconds
