"""A mosaic of generated image tiles: cut, blurred, searched for edges, summed up and stitched.

    headrace run examples/mosaic.py:program --on local

Python functions do the work on arrays; one stage is a command that sorts the tiles' statistics. The run
writes mosaic.pgm (a grey picture), edges.npy and summary.txt.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace import Program

Image = NDArray[np.float32]

SIDE = 3
TILE = 384
MARGIN = 8


def paint(seed: int) -> Image:
    """A picture of rings around random centres, with some noise, larger than all tiles together."""
    random = np.random.default_rng(seed)
    size = SIDE * TILE + 2 * MARGIN
    y, x = np.mgrid[0:size, 0:size].astype(np.float32)
    picture = random.normal(0.0, 0.05, (size, size)).astype(np.float32)
    for cx, cy, wave in random.uniform((0, 0, 20), (size, size, 90), (6, 3)).tolist():
        picture += np.cos(np.hypot(x - cx, y - cy) / wave * 6.283).astype(np.float32)
    return picture


def cut(picture: Image, where: tuple[int, int]) -> Image:
    """One tile with a margin, so that filters see what lies beyond its edge."""
    row, column = where
    end = TILE + 2 * MARGIN
    return picture[row * TILE : row * TILE + end, column * TILE : column * TILE + end].copy()


def blur(tile: Image) -> Image:
    """A Gaussian blur, first along columns and then along rows."""
    weights = np.exp(-0.5 * (np.arange(-6, 7) / 2.5) ** 2)
    weights /= weights.sum()
    for axis in (0, 1):
        tile = sum(w * np.roll(tile, shift - 6, axis) for shift, w in enumerate(weights))
    return tile.astype(np.float32)


def sobel(tile: Image) -> Image:
    """The strength of edges."""
    down = np.roll(tile, -1, 0) - np.roll(tile, 1, 0)
    across = np.roll(tile, -1, 1) - np.roll(tile, 1, 1)
    smooth_down = down + 0.5 * (np.roll(down, 1, 1) + np.roll(down, -1, 1))
    smooth_across = across + 0.5 * (np.roll(across, 1, 0) + np.roll(across, -1, 0))
    return np.hypot(smooth_down, smooth_across).astype(np.float32)


def measure(edges: Image, where: tuple[int, int]) -> str:
    """One line about a tile; the sharpest tile sorts first."""
    inner = edges[MARGIN:-MARGIN, MARGIN:-MARGIN]
    return f"{inner.mean():.4f} {inner.max():.4f} tile {where[0]},{where[1]}\n"


def gather(*lines: str) -> str:
    """All lines as one text."""
    return "".join(lines)


def stitch(*tiles: Image) -> Image:
    """Tiles without their margins, side by side."""
    inner = [tile[MARGIN:-MARGIN, MARGIN:-MARGIN] for tile in tiles]
    return np.block([inner[row * SIDE : (row + 1) * SIDE] for row in range(SIDE)])


def picture_file(mosaic: Image) -> bytes:
    """A PGM file: eight bits of grey."""
    grey = (255 * (mosaic - mosaic.min()) / np.ptp(mosaic)).astype(np.uint8)
    return f"P5 {grey.shape[1]} {grey.shape[0]} 255\n".encode() + grey.tobytes()


def build() -> Program:
    """The program: 42 tasks."""
    program = Program("mosaic")
    seed = program.input("seed", value=7)
    picture = program.task(paint, inputs=[seed], outputs={"picture": "5.4 MB"}, work=0.5, name="paint")
    blurred, sharp, lines = [], [], []
    for row in range(SIDE):
        for column in range(SIDE):
            tag = f"{row}{column}"
            where = program.input(f"where {tag}", value=(row, column))
            tile = program.task(
                cut, inputs=[picture, where], outputs={f"tile {tag}": "640 kB"}, work=0.001, name=f"cut {tag}"
            )
            soft = program.task(
                blur, inputs=[tile], outputs={f"soft {tag}": "640 kB"}, work=0.05, name=f"blur {tag}"
            )
            edges = program.task(
                sobel, inputs=[soft], outputs={f"edges {tag}": "640 kB"}, work=0.01, name=f"sobel {tag}"
            )
            line = program.task(
                measure, inputs=[edges, where], outputs={f"line {tag}": 60}, work=0.001, name=f"measure {tag}"
            )
            blurred.append(soft)
            sharp.append(edges)
            lines.append(line)
    mosaic = program.task(stitch, inputs=blurred, outputs={"mosaic": "5.3 MB"}, work=0.01, name="stitch")
    edges = program.task(stitch, inputs=sharp, outputs={"edges": "5.3 MB"}, work=0.01, name="stitch edges")
    text = program.task(gather, inputs=lines, outputs={"lines": 540}, work=0.001, name="gather")
    summary = program.task(
        ["sort", "-r", "{lines}"],
        inputs=[text],
        outputs={"summary": 540},
        stdout="summary",
        work=0.01,
        name="sort",
    )
    file = program.task(
        picture_file, inputs=[mosaic], outputs={"mosaic file": "1.3 MB"}, work=0.01, name="picture file"
    )
    program.output(file, "mosaic.pgm")
    program.output(edges, "edges.npy")
    program.output(summary, "summary.txt")
    return program


program = build()
