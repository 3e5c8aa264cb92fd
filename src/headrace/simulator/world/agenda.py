"""What ends when: a heap with the place of every id, so that an end can be moved or taken out."""

from __future__ import annotations

from headrace.arrays.compiling import inner


@inner
def earlier(world, i, j):
    """By time, ties by id."""
    a, b = world.heap_time[i], world.heap_time[j]
    return a < b or (a == b and world.heap_id[i] < world.heap_id[j])


@inner
def swap(world, i, j):
    world.heap_time[i], world.heap_time[j] = world.heap_time[j], world.heap_time[i]
    a, b = world.heap_id[i], world.heap_id[j]
    world.heap_id[i], world.heap_id[j] = b, a
    world.heap_at[b], world.heap_at[a] = i, j


@inner
def rise(world, i):
    while i > 0:
        parent = (i - 1) // 2
        if not earlier(world, i, parent):
            break
        swap(world, i, parent)
        i = parent


@inner
def sink(world, i):
    n = world.heap_len[0]
    while True:
        child = 2 * i + 1
        if child >= n:
            return
        if child + 1 < n and earlier(world, child + 1, child):
            child += 1
        if not earlier(world, child, i):
            return
        swap(world, i, child)
        i = child


@inner
def put(world, id, time):
    """Set or change when an id ends: O(log n)."""
    i = world.heap_at[id]
    if i < 0:
        i = world.heap_len[0]
        world.heap_len[0] = i + 1
        world.heap_id[i] = id
        world.heap_at[id] = i
        world.heap_time[i] = time
        rise(world, i)
    else:
        world.heap_time[i] = time
        rise(world, i)
        sink(world, world.heap_at[id])


@inner
def take_out(world, id):
    """An id ends no more."""
    i = world.heap_at[id]
    if i < 0:
        return
    last = world.heap_len[0] - 1
    if i != last:
        swap(world, i, last)
    world.heap_len[0] = last
    world.heap_at[id] = -1
    if i != last:
        moved = world.heap_id[i]
        rise(world, i)
        sink(world, world.heap_at[moved])
