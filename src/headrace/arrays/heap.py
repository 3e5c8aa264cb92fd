"""The priority queue: least key first, ties by id, with removal and change of key by id.

It is a pairing heap over rows of any structured array that has `HEAP_FIELDS`; an id is the number of a row. A queue is
nothing but its root, which is its first id, or NONE if it is empty: the caller keeps it, and every function
that changes the queue returns the new one. So one array can hold any number of queues, each id in one of them at
most, and none needs room of its own. That is what flows need: every pair of places has a queue of its
flows, and how long each becomes is not known beforehand.

Where entries are only pushed and popped, `heapq` compiles too and is as quick.
"""

from __future__ import annotations

import numpy as np

from headrace.arrays.compiling import leaf
from headrace.arrays.records import Records

HEAP_FIELDS = (
    ("key", np.float64),
    ("child", np.int32),  # the first of its children, or NONE
    ("next", np.int32),  # the sibling after it, or NONE
    ("previous", np.int32),  # the sibling before it; of a first child its parent, of a root itself, or NONE
)
NONE = -1


def make_rows(count: int, dtype: np.dtype[np.record]) -> Records:
    """Rows in no queue, otherwise zero.

    >>> from headrace.arrays.records import row_type
    >>> make_rows(2, row_type(*HEAP_FIELDS, ("size", np.float64)))["previous"].tolist()
    [-1, -1]
    """
    rows = np.zeros(count, dtype)
    rows["previous"] = NONE
    return rows


@leaf
def contains(rows: Records, id: int) -> bool:
    """Whether an id is in any queue."""
    return bool(rows[id].previous != NONE)


@leaf
def least_key(rows: Records, root: int) -> float:
    """The key of the first id of a queue; inf if the queue is empty."""
    return np.inf if root == NONE else float(rows[root].key)


@leaf
def push(rows: Records, root: int, id: int, key: float) -> int:
    """Add an id that is in no queue: the new root. O(1)."""
    rows[id].key = key
    rows[id].child = NONE
    return _add_tree(rows, root, id)


@leaf
def pop(rows: Records, root: int) -> int:
    """Take the first id, which is the root, out of a queue that is not empty: the new root. O(log ids) amortised."""
    rows[root].previous = NONE
    return _merged(rows, rows[root].child)


@leaf
def remove(rows: Records, root: int, id: int) -> int:
    """Take an id out of the queue it is in: the new root. O(log ids) amortised."""
    if root == id:
        return pop(rows, root)
    _cut(rows, id)
    rows[id].previous = NONE
    rest = _merged(rows, rows[id].child)
    return root if rest == NONE else _add_tree(rows, root, rest)


@leaf
def update(rows: Records, root: int, id: int, key: float) -> int:
    """Set the key of an id, which is added if it is in no queue: the new root. O(log ids) amortised."""
    if rows[id].previous == NONE:
        return push(rows, root, id, key)
    if key > rows[id].key:
        return push(rows, remove(rows, root, id), id, key)
    rows[id].key = key
    if root == id:
        return root
    _cut(rows, id)
    return _add_tree(rows, root, id)


@leaf
def _add_tree(rows: Records, root: int, tree: int) -> int:
    """Add a tree that is linked to nothing else: the new root."""
    if root != NONE:
        tree = _meld(rows, root, tree)
    rows[tree].next = NONE
    rows[tree].previous = tree
    return tree


@leaf
def _meld(rows: Records, a: int, b: int) -> int:
    """Make the tree with the greater root a child of the other: the root of both."""
    if rows[b].key < rows[a].key or (rows[b].key == rows[a].key and b < a):
        a, b = b, a
    child = rows[a].child
    rows[b].next = child
    rows[b].previous = a
    if child != NONE:
        rows[child].previous = b
    rows[a].child = b
    return a


@leaf
def _cut(rows: Records, id: int) -> None:
    """Separate a tree from its parent and siblings; it is not a root."""
    before, after = rows[id].previous, rows[id].next
    if rows[before].child == id:
        rows[before].child = after
    else:
        rows[before].next = after
    if after != NONE:
        rows[after].previous = before


@leaf
def _merged(rows: Records, tree: int) -> int:
    """One tree of a tree and its siblings, melded in twos and then all together; NONE of none."""
    pairs = NONE
    while tree != NONE:
        other = rows[tree].next
        rest = NONE
        if other != NONE:
            rest = rows[other].next
            tree = _meld(rows, tree, other)
        rows[tree].next = pairs
        pairs = tree
        tree = rest
    if pairs == NONE:
        return NONE
    root = pairs
    tree = rows[root].next
    while tree != NONE:
        rest = rows[tree].next
        root = _meld(rows, root, tree)
        tree = rest
    rows[root].next = NONE
    rows[root].previous = root
    return root
