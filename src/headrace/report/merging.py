"""Merge bars that are too narrow to be seen individually."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.model.graph import Floats
from headrace.report.chart import Bar

HALF_PIXEL = 0.5


@dataclass(frozen=True, eq=False)
class Segments:
    """Arrays over drawn segments, lane by lane and from left to right."""

    lane: NDArray[np.int64]
    left: Floats
    right: Floats
    colour: NDArray[np.int64]
    count: NDArray[np.int64]
    """Number of bars merged into the segment."""
    first: NDArray[np.int64]
    """One of those bars."""

    def __len__(self) -> int:
        return len(self.lane)


def segments(
    bars: Sequence[Bar],
    lanes: Mapping[str, int],
    colours: Mapping[str, int],
    scale: float,
    most: int,
) -> Segments:
    """Bars at `scale` pixels per second, merged into at most about `most` segments: O(n log n).

    A bar of half a pixel or more stays separate. Narrower ones of one lane in the same pixel
    are merged, in the colour that takes most of it; then neighbours of the same colour less than half a pixel
    apart are merged. If there are still too many, the limit is doubled until there are not.
    """
    lane = np.fromiter((lanes[b.lane] for b in bars), np.int64, len(bars))
    colour = np.fromiter((colours[b.colour_key] for b in bars), np.int64, len(bars))
    left = np.fromiter((b.start for b in bars), np.float64, len(bars)) * scale
    right = np.fromiter((b.finish for b in bars), np.float64, len(bars)) * scale
    order = np.lexsort((right, left, lane))
    one_each = np.ones(len(bars), np.int64)
    raw = Segments(lane[order], left[order], right[order], colour[order], one_each, order)
    limit = HALF_PIXEL
    merged = _join_neighbours(_fill_pixels(raw, limit), limit)
    while len(merged) > most and limit < 1e6:
        limit *= 2
        merged = _join_neighbours(_fill_pixels(raw, limit), limit)
    return merged


def _fill_pixels(raw: Segments, limit: float) -> Segments:
    """Merge bars narrower than the limit, one per interval of twice the limit."""
    narrow = np.flatnonzero(raw.right - raw.left < limit)
    if len(narrow) < 2:
        return raw
    cell = np.floor(raw.left[narrow] / (2 * limit)).astype(np.int64)
    width = int(cell.max()) + 1
    _, first, group = np.unique(raw.lane[narrow] * width + cell, return_index=True, return_inverse=True)
    colour = _main_colour(raw, narrow, group, len(first))
    right = np.full(len(first), -np.inf)
    np.maximum.at(right, group, raw.right[narrow])
    wide = np.setdiff1d(np.arange(len(raw)), narrow, assume_unique=True)
    kept = narrow[first]
    parts = Segments(
        lane=np.concatenate((raw.lane[wide], raw.lane[kept])),
        left=np.concatenate((raw.left[wide], raw.left[kept])),
        right=np.concatenate((raw.right[wide], right)),
        colour=np.concatenate((raw.colour[wide], colour)),
        count=np.concatenate((raw.count[wide], np.bincount(group, minlength=len(first)))),
        first=np.concatenate((raw.first[wide], raw.first[kept])),
    )
    return _take(parts, np.lexsort((parts.right, parts.left, parts.lane)))


def _main_colour(
    raw: Segments, narrow: NDArray[np.int64], group: NDArray[np.int64], groups: int
) -> NDArray[np.int64]:
    """The colour that takes most time in each group; ties: the first colour."""
    colours = int(raw.colour.max()) + 1
    share = np.zeros((groups, colours))
    length = raw.right[narrow] - raw.left[narrow] + 1e-12
    np.add.at(share, (group, raw.colour[narrow]), length)
    main: NDArray[np.int64] = share.argmax(axis=1)
    return main


def _join_neighbours(parts: Segments, limit: float) -> Segments:
    """Merge narrow or merged segments of the same colour that are closer than the limit."""
    if len(parts) < 2:
        return parts
    small = (parts.count > 1) | (parts.right - parts.left < limit)
    same = (parts.lane[1:] == parts.lane[:-1]) & (parts.colour[1:] == parts.colour[:-1])
    close = parts.left[1:] - parts.right[:-1] < limit
    starts = np.concatenate(([True], ~(same & close & small[1:] & small[:-1])))
    first = np.flatnonzero(starts)
    return Segments(
        lane=parts.lane[first],
        left=parts.left[first],
        right=np.maximum.reduceat(parts.right, first),
        colour=parts.colour[first],
        count=np.add.reduceat(parts.count, first),
        first=parts.first[first],
    )


def _take(parts: Segments, order: NDArray[np.int64]) -> Segments:
    return Segments(
        parts.lane[order],
        parts.left[order],
        parts.right[order],
        parts.colour[order],
        parts.count[order],
        parts.first[order],
    )
