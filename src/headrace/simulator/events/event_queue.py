"""The event queue: an indexed heap of end times, so that an entry can be changed or removed."""

from __future__ import annotations

from headrace.arrays.compiling import inner


@inner
def earlier(grid, i, j):
    """Whether entry i comes before entry j: by time, ties by id."""
    a, b = grid.heap_time[i], grid.heap_time[j]
    return a < b or (a == b and grid.heap_id[i] < grid.heap_id[j])


@inner
def swap(grid, i, j):
    grid.heap_time[i], grid.heap_time[j] = grid.heap_time[j], grid.heap_time[i]
    a, b = grid.heap_id[i], grid.heap_id[j]
    grid.heap_id[i], grid.heap_id[j] = b, a
    grid.heap_at[b], grid.heap_at[a] = i, j


@inner
def rise(grid, i):
    while i > 0:
        parent = (i - 1) // 2
        if not earlier(grid, i, parent):
            break
        swap(grid, i, parent)
        i = parent


@inner
def sink(grid, i):
    n = grid.heap_len[0]
    while True:
        child = 2 * i + 1
        if child >= n:
            return
        if child + 1 < n and earlier(grid, child + 1, child):
            child += 1
        if not earlier(grid, child, i):
            return
        swap(grid, i, child)
        i = child


@inner
def put(grid, id, time):
    """Set or change the end time of an id: O(log n)."""
    i = grid.heap_at[id]
    if i < 0:
        i = grid.heap_len[0]
        grid.heap_len[0] = i + 1
        grid.heap_id[i] = id
        grid.heap_at[id] = i
        grid.heap_time[i] = time
        rise(grid, i)
    else:
        grid.heap_time[i] = time
        rise(grid, i)
        sink(grid, grid.heap_at[id])


@inner
def take_out(grid, id):
    """Remove an id from the queue: O(log n)."""
    i = grid.heap_at[id]
    if i < 0:
        return
    last = grid.heap_len[0] - 1
    if i != last:
        swap(grid, i, last)
    grid.heap_len[0] = last
    grid.heap_at[id] = -1
    if i != last:
        moved = grid.heap_id[i]
        rise(grid, i)
        sink(grid, grid.heap_at[moved])
