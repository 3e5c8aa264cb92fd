"""A virtual microscope: a part of a large slide, at a chosen magnification, from compressed tiles.

    headrace trial examples/microscope.py:app -o microscope.ini

Reader -> Decompress -> Clip -> Zoom -> View. A slide lies in a file of zlib-compressed tiles. Each unit of
work is a look at one part of it: the reader picks the tiles that the part touches, Clip cuts away what
lies outside, Zoom averages squares of pixels, and View puts the picture together, as a PPM file.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.runtime.filters import App, Buffer, Filter, Output, Reader, Unit, Work

Pixels = NDArray[np.uint8]

TILE = 256
"""Pixels along the side of a tile."""
HEADER = "<4i"
"""In every buffer: row and column of its upper left pixel, height, width."""
PLACE = struct.calcsize(HEADER)


@dataclass(frozen=True)
class Look:
    """What the user looks at: rows and columns of the slide, and how many pixels become one."""

    top: int
    left: int
    height: int
    width: int
    zoom: int

    @staticmethod
    def of(work: Work) -> Look:
        look = Look(**{name: int(work.settings[name]) for name in Look.__dataclass_fields__})
        if TILE % look.zoom or any(
            side % look.zoom for side in (look.top, look.left, look.height, look.width)
        ):
            raise ValueError(f"zoom {look.zoom} must divide {TILE} and the sides of the look")
        return look

    def tiles(self) -> list[tuple[int, int]]:
        """The tiles that the look touches, row by row."""
        rows = range(self.top // TILE, -(-(self.top + self.height) // TILE))
        columns = range(self.left // TILE, -(-(self.left + self.width) // TILE))
        return [(row, column) for row in rows for column in columns]


def paint_tile(row: int, column: int) -> Pixels:
    """One tile of the slide: stained tissue, cells with dark cores, a little noise. It depends on nothing else."""
    y, x = np.mgrid[row * TILE : (row + 1) * TILE, column * TILE : (column + 1) * TILE].astype(np.float32)
    tissue = np.sin(x / 61) * np.cos(y / 47) + np.sin((x + y) / 113)
    cells = np.cos(x / 6.5 + np.sin(y / 23)) * np.cos(y / 6.5 + np.cos(x / 29))
    grain = np.random.default_rng((row, column)).integers(0, 6, (TILE // 4, TILE // 4, 3))
    noise = grain.repeat(4, axis=0).repeat(4, axis=1)
    red = 205 + 20 * tissue - 60 * (cells > 0.7)
    green = 150 + 30 * tissue - 90 * (cells > 0.7)
    blue = 190 + 15 * tissue - 30 * (cells > 0.7)
    return (np.stack([red, green, blue], axis=2) + noise).astype(np.uint8)


def pack(row: int, column: int, pixels: Pixels) -> bytes:
    """A buffer with pixels and where they belong."""
    return (
        struct.pack(HEADER, row, column, pixels.shape[0], pixels.shape[1])
        + np.ascontiguousarray(pixels).tobytes()
    )


def unpack(buffer: Buffer) -> tuple[int, int, Pixels]:
    """Row and column of the upper left pixel, and the pixels."""
    row, column, height, width = struct.unpack_from(HEADER, buffer.data)
    pixels = np.frombuffer(buffer.data, np.uint8, offset=PLACE)
    return row, column, pixels.reshape(height, width, 3)


class SlideReader(Reader):
    """Reads the compressed tiles of the look from the slide's file."""

    def prepare(self, work: Work) -> None:
        tiles = Look.of(work).tiles()
        mine = tiles[round(len(tiles) * work.begin) : round(len(tiles) * work.end)]
        self.file = work.folder / "slide.bin"
        self.index: list[tuple[int, int, int]] = []
        with self.file.open("wb") as file:
            for row, column in mine:
                self.index.append((row, column, file.write(zlib.compress(paint_tile(row, column).tobytes()))))

    def read(self, out: Output) -> None:
        with self.file.open("rb") as file:
            for row, column, size in self.index:
                out.send(struct.pack(HEADER, row * TILE, column * TILE, TILE, TILE) + file.read(size))


class Decompress(Filter):
    """Restores the pixels of a tile."""

    def process(self, buffer: Buffer, out: Output) -> None:
        out.send(buffer.data[:PLACE] + zlib.decompress(buffer.data[PLACE:]))


class Clip(Filter):
    """Keeps the pixels inside the look."""

    def init(self, work: Work) -> None:
        self.look = Look.of(work)

    def process(self, buffer: Buffer, out: Output) -> None:
        look = self.look
        row, column, pixels = unpack(buffer)
        top, left = max(row, look.top), max(column, look.left)
        bottom = min(row + len(pixels), look.top + look.height)
        right = min(column + pixels.shape[1], look.left + look.width)
        out.send(pack(top, left, pixels[top - row : bottom - row, left - column : right - column]))


class Zoom(Filter):
    """Averages squares of zoom x zoom pixels into one."""

    def init(self, work: Work) -> None:
        self.zoom = Look.of(work).zoom

    def process(self, buffer: Buffer, out: Output) -> None:
        row, column, pixels = unpack(buffer)
        out.send(pack(row // self.zoom, column // self.zoom, shrink(pixels, self.zoom)))


def shrink(pixels: Pixels, zoom: int) -> Pixels:
    """The mean of each square of pixels, rounded down."""
    height, width = pixels.shape[0] // zoom, pixels.shape[1] // zoom
    squares = pixels.reshape(height, zoom, width, zoom, 3)
    return (squares.sum(axis=(1, 3), dtype=np.uint32) // zoom**2).astype(np.uint8)


class Viewer(Filter):
    """Puts the picture together and sends it as a PPM file, in pieces that fit into buffers."""

    def init(self, work: Work) -> None:
        self.look = Look.of(work)
        zoom = self.look.zoom
        self.picture = np.zeros((self.look.height // zoom, self.look.width // zoom, 3), np.uint8)

    def process(self, buffer: Buffer, out: Output) -> None:
        row, column, pixels = unpack(buffer)
        row -= self.look.top // self.look.zoom
        column -= self.look.left // self.look.zoom
        self.picture[row : row + len(pixels), column : column + pixels.shape[1]] = pixels

    def finalize(self, out: Output) -> None:
        for piece in pieces(ppm(self.picture)):
            out.send(piece)


def ppm(picture: Pixels) -> bytes:
    """The picture as a file that image viewers open."""
    return b"P6 %d %d 255\n" % (picture.shape[1], picture.shape[0]) + picture.tobytes()


def pieces(data: bytes) -> Iterator[bytes]:
    """The data cut into buffers."""
    size = buffer_size()
    return (data[begin : begin + size] for begin in range(0, len(data), size))


def buffer_size() -> int:
    """Room for one tile with its place; noise can make a compressed tile a little larger."""
    return PLACE + TILE * TILE * 3 + 1024


LOOKS = (Look(200, 120, 1280, 1600, 2), Look(1000, 2000, 2048, 2048, 4))


def build(*looks: Look) -> App:
    """The application that looks at these parts of the slide, one after the other."""
    units = [Unit(f"look {number}", dict(vars(look))) for number, look in enumerate(looks or LOOKS)]
    app = App("microscope", buffer=buffer_size(), units=units)
    app.filter("Reader", SlideReader)
    app.filter("Decompress", Decompress, inputs=["Reader"])
    app.filter("Clip", Clip, inputs=["Decompress"])
    app.filter("Zoom", Zoom, inputs=["Clip"])
    app.filter("View", Viewer, inputs=["Zoom"])
    return app


app = build()
