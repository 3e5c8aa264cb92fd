"""The arrays of a run for compiled functions: one reference instead of a hundred arguments.

A NamedTuple of many arrays is slow to pass to a compiled function, because every array is unpacked on every call. It
is converted once to a numba `structref`, which shares the arrays. Schedulers receive references to read-only arrays:
numba refuses to compile a function that writes to them.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numba import config
from numba.experimental import structref

from headrace.arrays.compiling import entry
from headrace.arrays.references import Reference, register
from headrace.core.initial_state import with_more_copy_records
from headrace.core.state import COPIES, CoordinatorState, StaticProblem
from headrace.model.graph import Ints


@register
class ProblemType(Reference):
    pass


@register
class StateType(Reference):
    pass


class ProblemRef(structref.StructRefProxy):  # type: ignore[misc]
    """A `StaticProblem` for compiled functions."""


class StateRef(structref.StructRefProxy):  # type: ignore[misc]
    """A `CoordinatorState` for compiled functions."""


structref.define_constructor(ProblemRef, ProblemType, list(StaticProblem._fields))
structref.define_constructor(StateRef, StateType, list(CoordinatorState._fields))
structref.define_boxing(ProblemType, ProblemRef)
structref.define_boxing(StateType, StateRef)


@entry
def _problem_ref(problem: Any) -> Any:
    return ProblemRef(*problem)


@entry
def _state_ref(state: Any) -> Any:
    return StateRef(*state)


Record = TypeVar("Record", StaticProblem, CoordinatorState)


def read_only(record: Record) -> Record:
    """The same record with read-only arrays."""
    fields: dict[str, Any] = {}
    for name, value in zip(record._fields, record, strict=True):
        if isinstance(value, np.ndarray):
            value = value.view()
            value.flags.writeable = False
        fields[name] = value
    return record._replace(**fields)


class RunRecords:
    """The static problem and the state of one run, with references to them for compiled functions.

    `problem_ref` and `state_ref` are for the coordinator and the simulated grid. `view_refs` are the same, read-only.
    Without compilation (NUMBA_DISABLE_JIT) the references are the records themselves.
    """

    def __init__(self, problem: StaticProblem, state: CoordinatorState) -> None:
        self._take_problem(problem)
        self._take(state)
        self._most_reads = int(np.diff(problem.read_ptr).max(initial=0))

    def change(self, problem: StaticProblem, state: CoordinatorState) -> None:
        """Replace arrays of the problem and of the state."""
        self._take_problem(problem)
        self._take(state)

    def _take_problem(self, problem: StaticProblem) -> None:
        self.problem = problem
        self.static_view = read_only(problem)
        self.problem_ref: object = problem if config.DISABLE_JIT else _problem_ref(problem)
        self._problem_view: object = (
            self.static_view if config.DISABLE_JIT else _problem_ref(self.static_view)
        )

    def _take(self, state: CoordinatorState) -> None:
        self.state = state
        self.state_view = read_only(state)
        self.state_ref: object = state if config.DISABLE_JIT else _state_ref(state)
        view: object = self.state_view if config.DISABLE_JIT else _state_ref(self.state_view)
        self.view_refs = (self._problem_view, view)
        """Read-only problem and state for schedulers."""

    def reserve(self, copies: int) -> None:
        """Ensure that this many copy records can be added."""
        if int(self.state.counters[COPIES]) + copies > len(self.state.copy_item):
            self._take(with_more_copy_records(self.state, copies))

    def reserve_for(self, tasks: Ints) -> None:
        """Ensure that a copy record can be added for each input of these tasks."""
        most = len(tasks) * self._most_reads
        if int(self.state.counters[COPIES]) + most > len(self.state.copy_item):
            read_ptr = self.problem.read_ptr
            self.reserve(int((read_ptr[tasks + 1] - read_ptr[tasks]).sum()))
