"""The program of the demo: a colour picture that is cut, sharpened and stitched, really computed with numpy.

In every round each colour is cut into pieces that are sharpened side by side and then stitched, and its next
round needs the whole: a slow machine with too many pieces holds everybody up. Next to the colours runs a chain
of calibration steps, each needing the one before, that the last task waits for: whoever starts it late or on a
slow machine ends late.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.model.program import Program

Image = NDArray[np.float32]

COLOURS = ("red", "green", "blue")
PIECES = 4
ROUNDS = 6
CHAIN = 8
HEIGHT, WIDTH = 384, 768
_PIECE = HEIGHT * WIDTH * 4


def smooth(image: Image, times: int) -> Image:
    """Smooth repeatedly: each pixel moves towards its neighbours, more so for small differences."""
    for _ in range(times):
        around = np.roll(image, 1, 0) + np.roll(image, -1, 0) + np.roll(image, 1, 1)
        image = image + np.tanh(around - np.float32(3.0) * image)
    return image


def paint(number: int) -> Image:
    """One piece of the sky: noise with a few bright stars."""
    random = np.random.default_rng(number)
    piece = random.normal(100.0, 10.0, (HEIGHT, WIDTH)).astype(np.float32)
    piece[random.integers(0, HEIGHT, 20), random.integers(0, WIDTH, 20)] += 4000.0
    return piece


def sharpen(picture: Image, number: int) -> Image:
    """Cut out one piece, subtract its smoothed version and amplify the rest."""
    piece = picture[number * HEIGHT : (number + 1) * HEIGHT]
    sharper: Image = piece + np.float32(0.1) * (piece - smooth(piece, 50))
    return sharper


def stitch(*pieces: Image) -> Image:
    """Assemble an image from its pieces."""
    return np.concatenate(pieces, axis=0)


def calibrate(before: Image) -> Image:
    """One step towards a flat field."""
    after: Image = np.sqrt(np.abs(smooth(before, 40)) + np.float32(1.0))
    return after


def flatten(field: Image, *colours: Image) -> Image:
    """Combine all colours into one image, divided by the level of the flat field."""
    # The largest value, not the mean: the last digit of a sum depends on where the array lies in memory.
    flat: Image = np.stack(colours) / field.max()
    return flat


def demo_program() -> Program:
    """About 100 tasks, each initially estimated as one second of work."""
    program = Program("mosaic")
    whole = _PIECE * PIECES

    def add(body: Callable[..., Any], inputs: list[Any], name: str, size: int = _PIECE) -> Any:
        return program.task(body, inputs=inputs, outputs={f"{name}.out": size}, name=name, kind=body.__name__)

    numbers = [program.input(f"number{i}", value=i) for i in range(PIECES)]
    pictures = []
    for c, colour in enumerate(COLOURS):
        seeds = [program.input(f"{colour}{i}", value=100 * c + i) for i in range(PIECES)]
        pieces = [add(paint, [seed], f"paint {colour} {i}") for i, seed in enumerate(seeds)]
        picture = add(stitch, pieces, f"stitch {colour}", whole)
        for turn in range(ROUNDS):
            pieces = [
                add(sharpen, [picture, n], f"sharpen {colour} {turn}.{i}") for i, n in enumerate(numbers)
            ]
            picture = add(stitch, pieces, f"stitch {colour} {turn}", whole)
        pictures.append(picture)
    field = add(paint, [program.input("chart", value=1000)], "chart")
    for step in range(CHAIN):
        field = add(calibrate, [field], f"calibrate {step}")
    program.output(add(flatten, [field, *pictures], "flatten", whole * len(COLOURS)))
    return program


def try_each_kind() -> None:
    """Run one task of each kind, so that everything is loaded before measuring."""
    piece = paint(0)
    picture = stitch(*[piece] * PIECES)
    sharpen(picture, 1)
    flatten(calibrate(piece), picture)
