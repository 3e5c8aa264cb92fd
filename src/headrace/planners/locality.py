"""The decision rule of L-HEFT: which ready task next, and whether it stays where its data is.

It looks at nothing but ready tasks and the places that hold their inputs, so a planner can apply it level by
level and a scheduler to whatever is ready at the moment.
"""

from __future__ import annotations

import numpy as np

from headrace.model.graph import Bools, Floats, Ints
from headrace.planners.board import Board
from headrace.planners.kernels.locality import least_traffic


def rank_ready(board: Board, ready: Ints, level: Ints, seconds: Floats) -> tuple[Ints, Bools]:
    """The ready tasks in the order in which they are to be placed, and which of them need no traffic.

    Rank (equation 3 of the macro-dataflow paper): first the lower level, then the least traffic over all
    hosts that hold something; equal ranks: the longer run time, then the position in `ready`. `level` and
    `seconds` (expected run time) are those of each ready task. A task needs no traffic if a host holds all
    its inputs; it is to go to such a host, the others to where they finish first.

    O(reads * copies + ready log ready).
    """
    tasks, host_place = board.arrays.tasks, board.arrays.machines.host_place
    traffic = np.empty(len(ready))
    least_traffic(ready.astype(np.int64), tasks, board.copies, host_place, board.scratch.held, traffic)
    order = np.lexsort((np.arange(len(ready)), -seconds, traffic, level))
    return ready[order], traffic[order] == 0.0
