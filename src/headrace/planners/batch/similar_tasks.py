"""Tasks of a sweep in blocks whose completion times are bounded well by those of their extremes."""

from __future__ import annotations

import math

import numpy as np

from headrace.arrays import Int64s
from headrace.arrays.problem import TaskArrays
from headrace.planners.batch.records import HostGroups, TaskInputs
from headrace.planners.batch.sweep_blocks import BLOCK


def similar_tasks(
    tasks: TaskArrays, groups: HostGroups, inputs: TaskInputs, rows: int
) -> tuple[Int64s, Int64s]:
    """The first `rows` tasks block by block, as positions, and where each block begins: O(reads + rows log rows).

    Tasks that read the same shared items are together, since these items are at the same places. Within such a set,
    tasks are sorted by run time and cut into strips, and each strip is sorted by the time to send inputs. There are
    more strips the more run times vary, compared with times to send.
    """
    task = tasks.order[:rows].astype(np.int64)
    size = np.concatenate(([0.0], np.cumsum(tasks.size[inputs.item])))
    send = (size[inputs.ptr[task + 1]] - size[inputs.ptr[task]]) * _mean_slowness(groups)
    run = np.nan_to_num(tasks.work[task] / groups.group_rate.mean(axis=1)[tasks.speed_class[task]])
    _, group, counts = np.unique(_shared(inputs)[task], return_inverse=True, return_counts=True)
    largest = -(-int(counts.max(initial=1)) // BLOCK)
    spread = float(run.std()) / max(float(send.std()), 1e-300) if rows else 1.0
    strips = int(np.clip(math.sqrt(largest * min(spread, float(largest))), 1, largest))
    by_run = np.lexsort((run, tasks.speed_class[task], group))
    begin = np.cumsum(counts) - counts
    strip = np.empty(rows, np.int64)
    strip[by_run] = (np.arange(rows) - begin[group[by_run]]) * strips // counts[group[by_run]]
    longest = np.full(len(counts), -np.inf)
    np.maximum.at(longest, group, send)
    sets = np.argsort(longest, kind="stable")  # those that take similar times to send are neighbours
    return np.lexsort((send, strip, group, longest[group])), _cuts(counts[sets])


def _shared(inputs: TaskInputs) -> Int64s:
    """A number for each task that is equal for tasks with the same shared inputs, and hardly ever for others."""
    mixed = np.random.default_rng(0).integers(1, 2**62, int(inputs.column.max(initial=-1)) + 2)
    mixed[-1] = 0  # of items with one reader, whose column is -1
    # The sums overflow and wrap around, which their differences undo.
    total = np.concatenate((np.zeros(1, np.int64), np.cumsum(mixed[inputs.column])))
    return np.asarray(total[inputs.ptr[1:]] - total[inputs.ptr[:-1]], np.int64)


def _mean_slowness(groups: HostGroups) -> float:
    """Mean seconds for each byte from the origin."""
    known = groups.in_link >= 0
    return float((1.0 / groups.in_bandwidth[known]).mean()) if known.any() else 0.0


def _cuts(counts: Int64s) -> Int64s:
    """Where blocks begin: large sets are divided, small ones put together.

    >>> _cuts(np.array([20, 30, 150, 10])).tolist()
    [0, 50, 100, 150, 200, 210]
    """
    sizes: list[int] = []
    room = 0
    for count in counts.tolist():
        parts = -(-count // BLOCK)
        if count <= min(room, BLOCK // 2):
            sizes[-1] += count
            room -= count
            continue
        sizes += [count * (k + 1) // parts - count * k // parts for k in range(parts)]
        room = BLOCK - sizes[-1] if count <= BLOCK // 2 else 0
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
