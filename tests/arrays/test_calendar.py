"""Bookings of exclusive and shared resources against plain lists of intervals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from headrace.arrays.calendar import (
    Booking,
    Calendar,
    book,
    cancel,
    earliest,
    exceeded_until,
    exclusive_calendar,
    first_fit,
    full,
    larger,
    occupy,
    shared_calendar,
)
from headrace.arrays.compiling import entry


@entry
def find(calendar: Calendar, resource: int, ready: float, duration: float) -> float:
    return earliest(calendar, resource, ready, duration)


@entry
def add(calendar: Calendar, resource: int, start: float, end: float) -> Booking:
    return book(calendar, resource, start, end)


@entry
def take_back(calendar: Calendar, resource: int, booking: Booking) -> None:
    cancel(calendar, resource, booking)


@entry
def is_full(calendar: Calendar) -> bool:
    return full(calendar)


@entry
def use(calendar: Calendar, resource: int, start: float, end: float, amount: float) -> None:
    occupy(calendar, resource, start, end, amount)


@entry
def fit(calendar: Calendar, resource: int, ready: float, duration: float, most: float) -> float:
    return first_fit(calendar, resource, ready, duration, most)


@entry
def exceeded(calendar: Calendar, resource: int, start: float, end: float, most: float) -> float:
    return exceeded_until(calendar, resource, start, end, most)


def blocks_of(calendar: Calendar, resource: int) -> list[tuple[float, float]]:
    base, length = int(calendar.offset[resource]), int(calendar.length[resource])
    entries = slice(base, base + length)
    return list(zip(calendar.start[entries].tolist(), calendar.end[entries].tolist(), strict=True))


def first_gap(busy: list[tuple[float, float]], ready: float, duration: float) -> float:
    time = ready
    for start, end in sorted(busy):
        if end > time and start < time + duration:
            time = end
    return time


def test_exclusive_bookings_equal_plain_intervals() -> None:
    random = np.random.default_rng(1)
    calendar = exclusive_calendar(3, 4)
    busy: list[list[tuple[float, float]]] = [[], [], []]
    grown = 0
    for _ in range(400):
        resource = int(random.integers(3))
        ready, duration = float(random.integers(60)), float(random.integers(1, 5))
        start = find(calendar, resource, ready, duration)
        assert start == first_gap(busy[resource], ready, duration)
        before = blocks_of(calendar, resource)
        booking = add(calendar, resource, start, start + duration)
        if is_full(calendar):
            assert blocks_of(calendar, resource) == before
            calendar, grown = larger(calendar), grown + 1
            booking = add(calendar, resource, start, start + duration)
        if random.random() < 0.4:
            take_back(calendar, resource, booking)
            assert blocks_of(calendar, resource) == before
        else:
            busy[resource].append((start, start + duration))
    assert grown > 0
    for resource in range(3):
        blocks = blocks_of(calendar, resource)
        assert all(a[1] < b[0] for a, b in pairwise(blocks))
        covered = sum(end - start for start, end in blocks)
        assert covered == pytest.approx(sum(end - start for start, end in busy[resource]))


def test_shared_levels_equal_plain_sums() -> None:
    random = np.random.default_rng(2)
    calendar = shared_calendar(1, 4096)
    level = np.zeros(2000)
    for _ in range(200):
        start, length, amount = (
            int(random.integers(60)),
            int(random.integers(1, 9)),
            float(random.integers(1, 4)),
        )
        most = 6.0 - amount
        time = fit(calendar, 0, float(start), float(length), most)
        plain = next(t for t in range(start, 1990) if level[t : t + length].max() <= most)
        assert time == plain
        assert exceeded(calendar, 0, time, time + length, most) == -1.0
        sign = (
            -1.0 if random.random() < 0.3 and level[int(time) : int(time) + length].min() >= amount else 1.0
        )
        use(calendar, 0, time, time + length, sign * amount)
        level[int(time) : int(time) + length] += sign * amount
    assert level.max() > 3
