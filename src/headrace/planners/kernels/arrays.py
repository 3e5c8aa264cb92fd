"""Problems and half-made plans as the compiled loops see them: named tuples of arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

OK, POOL_FULL, NO_ROUTE = 0, 1, 2


class Tasks(NamedTuple):
    """The program, as the kernels read it."""

    work: Any
    kind: Any
    size: Any
    everywhere: Any
    """Items from outside that need no transfer."""
    read_ptr: Any
    reads: Any
    write_ptr: Any
    writes: Any
    result: Any
    held_ptr: Any
    """CSR of places that hold an item before the program starts."""
    held: Any


class Machines(NamedTuple):
    """The platform, as the kernels read it."""

    rate: Any
    """[kinds, hosts]"""
    free_at: Any
    core_ptr: Any
    """Cores of host h are core_ptr[h] .. core_ptr[h + 1] - 1."""
    host_place: Any
    zone: Any
    port: Any
    out_port: Any
    in_port: Any
    route_ptr: Any
    route_links: Any
    route_bandwidth: Any
    route_latency: Any
    origin: Any
    """-1: results stay where they are."""
    booked: Any
    """True: links carry one transfer at a time."""


class Choice(NamedTuple):
    """Where tasks may go, and which place is best."""

    hosts: Any
    """The hosts allowed, ascending."""
    places: Any
    """Their places, each once."""
    forced: Any
    """The only host of each task, or -1 for any allowed one."""
    stay: Any
    """Tasks that go where all their inputs are, if that is at an allowed host."""
    extra: Any
    """[1 or tasks, places] added to the goal of a task at a place; one row counts for all tasks."""
    by_start: Any
    """True: earliest start first, then earliest finish. False: earliest finish."""


class Copies(NamedTuple):
    """Places that hold an item and since when: a linked list per item.

    Items with many readers also have a dense row over places, so that looking one up does not take longer the
    more copies there are.
    """

    head: Any
    next: Any
    place: Any
    time: Any
    count: Any
    row: Any
    """The row of each item, or -1."""
    arrival: Any
    """[rows, places] earliest time the item can be at each place if no link were busy."""
    node: Any
    """[rows, places] the copy at each place, or -1."""


class Moves(NamedTuple):
    """Transfers made so far."""

    item: Any
    source: Any
    target: Any
    start: Any
    finish: Any
    count: Any


class Log(NamedTuple):
    """Tentative link bookings of one candidate, to be taken back."""

    link: Any
    how: Any
    at: Any
    start: Any
    end: Any
    count: Any


class Scratch(NamedTuple):
    """Room the loop writes into, made once."""

    arrival: Any
    since: Any
    back: Any
    promise: Any
    inputs: Any
    times: Any
    links: Any
    held: Any
    """How many inputs of a task each place holds; zero between tasks."""
    hosts: Any
    places: Any


class Placed(NamedTuple):
    """Host, core and times of each task."""

    host: Any
    core: Any
    start: Any
    finish: Any
