"""Keys of many ready tasks, renewed now and then instead of after each placement.

Placing a task can change the keys of all others. Among many ready tasks,

- the keys of all are renewed after a quarter of those beyond a limit have been placed;
- in between, the task with the least key is next, but its key is renewed first if it is not current. If another key is
  the least then, that one is renewed, and so on, for FIRST tasks at most.

So n ready tasks need O(n) renewals of single keys instead of O(n^2). Up to the limit (`Batch.exact`), all keys are
current, and the rules are those of the literature to the letter.
"""

from __future__ import annotations

from headrace.arrays.compiling import leaf
from headrace.planners.batch.records import ReadyTasks

FIRST = 4
"""Tasks whose keys are renewed before a placement, at most."""
_SHARE = 4
"""One over the share of the tasks that is placed before all keys are renewed."""


@leaf
def until_renewal(left: int, exact: int) -> int:
    """After how many placements the keys of all `left` ready tasks are renewed: 1 if they are few."""
    return 1 if left <= exact else 1 + (left - exact) // _SHARE


@leaf
def least_key(ready: ReadyTasks, count: int) -> int:
    """The row with the smallest key among the first `count` unplaced rows: O(count)."""
    rows, key, tie = ready.unplaced, ready.key, ready.tie
    chosen = rows[0]
    for i in range(1, count):
        row = rows[i]
        if key[row] < key[chosen] or (key[row] == key[chosen] and tie[row] < tie[chosen]):
            chosen = row
    return chosen
