"""Records of arrays as compiled code holds them: one pointer in place of a hundred arguments.

A NamedTuple of many arrays is slow to hand to a compiled function: every array is looked at on every
call. Here it is turned once into a reference that is passed on as it is; both share the arrays.
"""

from __future__ import annotations

from typing import Any

from numba import config, njit, types
from numba.experimental import structref

from headrace.core.state import CoordinatorState, StaticProblem


def _plain(fields: Any) -> Any:
    return tuple((name, types.unliteral(kind)) for name, kind in fields)


@structref.register
class CaseType(types.StructRef):  # type: ignore[misc]
    def preprocess_fields(self, fields: Any) -> Any:
        return _plain(fields)


@structref.register
class DeskType(types.StructRef):  # type: ignore[misc]
    def preprocess_fields(self, fields: Any) -> Any:
        return _plain(fields)


class CaseRef(structref.StructRefProxy):  # type: ignore[misc]
    """A `StaticProblem` for compiled code."""


class DeskRef(structref.StructRefProxy):  # type: ignore[misc]
    """A `CoordinatorState` for compiled code."""


structref.define_constructor(CaseRef, CaseType, list(StaticProblem._fields))
structref.define_constructor(DeskRef, DeskType, list(CoordinatorState._fields))
structref.define_boxing(CaseType, CaseRef)
structref.define_boxing(DeskType, DeskRef)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _case_ref(problem: Any) -> Any:
    return CaseRef(*problem)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _desk_ref(state: Any) -> Any:
    return DeskRef(*state)


def problem_ref(problem: StaticProblem) -> Any:
    """The problem for compiled code; itself where nothing is compiled."""
    return problem if config.DISABLE_JIT else _case_ref(problem)


def state_ref(state: CoordinatorState) -> Any:
    """The state for compiled code; itself where nothing is compiled."""
    return state if config.DISABLE_JIT else _desk_ref(state)
