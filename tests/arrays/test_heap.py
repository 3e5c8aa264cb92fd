"""The priority queues, against sorted lists."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.arrays.compiling import entry
from headrace.arrays.heap import HEAP_FIELDS, NONE, contains, least_key, make_rows, pop, push, remove, update
from headrace.arrays.records import Records, row_type

PUSH, POP, REMOVE, UPDATE = range(4)


@entry
def apply(rows, root, kind, id, key):
    """One operation: the new root."""
    if kind == PUSH:
        return push(rows, root, id, key)
    if kind == POP:
        return pop(rows, root)
    if kind == REMOVE:
        return remove(rows, root, id)
    return update(rows, root, id, key)


@entry
def look(rows, root, id):
    return least_key(rows, root), contains(rows, id)


def validate(rows: Records, root: int) -> set[int]:
    """All ids of a queue, after checking links and the order of keys."""
    found: set[int] = set()
    if root == NONE:
        return found
    assert rows[root].previous == root
    assert rows[root].next == NONE
    stack = [root]
    while stack:
        parent = stack.pop()
        assert parent not in found
        found.add(parent)
        before, child = parent, int(rows[parent].child)
        while child != NONE:
            assert rows[child].previous == before
            assert (rows[parent].key, parent) < (rows[child].key, child)
            stack.append(child)
            before, child = child, int(rows[child].next)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_any_operations_give_what_sorted_lists_give(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids, queues = 40, 3
    rows, roots = make_rows(ids, row_type(*HEAP_FIELDS)), [NONE] * queues
    queue_of: dict[int, int] = {}
    key_of: dict[int, float] = {}
    for _ in range(1500):
        kind, id = int(rng.integers(4)), int(rng.integers(ids))
        queue = queue_of.get(id, int(rng.integers(queues)))
        key = float(rng.integers(12)) if seed % 2 else float(rng.uniform())
        inside = sorted((key_of[i], i) for i in queue_of if queue_of[i] == queue)
        if (kind == PUSH and id in queue_of) or (kind == REMOVE and id not in queue_of):
            continue
        if kind == POP and not inside:
            continue
        first = roots[queue]
        roots[queue] = apply(rows, first, kind, id, key)
        if kind == POP:
            assert first == inside[0][1]
            del queue_of[first]
        elif kind == REMOVE:
            del queue_of[id]
        else:
            queue_of[id], key_of[id] = queue, key
        for q in range(queues):
            assert validate(rows, roots[q]) == {i for i in queue_of if queue_of[i] == q}
        rest = [key_of[i] for i in queue_of if queue_of[i] == queue]
        assert look(rows, roots[queue], id) == (min(rest, default=np.inf), id in queue_of)
