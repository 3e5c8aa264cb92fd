"""Records as references: every compiled function reads their fields, and the arrays live as long as the reference."""

from __future__ import annotations

import gc
import sys
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError
from numba.experimental import structref

from headrace.arrays.compiling import entry, inner, leaf
from headrace.arrays.references import Reference, register


class Ledger(NamedTuple):
    amount: np.ndarray
    owner: np.ndarray
    limit: int


@register
class LedgerType(Reference):
    pass


class LedgerRef(structref.StructRefProxy):
    pass


structref.define_constructor(LedgerRef, LedgerType, list(Ledger._fields))
structref.define_boxing(LedgerType, LedgerRef)


@entry
def ledger_ref(ledger):
    return LedgerRef(*ledger)


@leaf
def pay(ledger, owner, amount):
    """Reads a field again after it has written to an array of another."""
    for k in range(len(ledger.owner)):
        if ledger.owner[k] == owner and ledger.amount[k] + amount <= ledger.limit:
            ledger.amount[k] += amount


@entry
def pay_twice(ledger, owner, amount):
    pay(ledger, owner, amount)
    pay(ledger, owner, amount)
    return ledger.amount.sum()


def ledger() -> Ledger:
    return Ledger(np.zeros(3), np.array([0, 1, 0], np.int32), 5)


def test_a_leaf_reads_and_writes_the_arrays_that_python_sees() -> None:
    made = ledger()
    assert pay_twice(ledger_ref(made), 0, 2.0) == 8.0
    assert made.amount.tolist() == [4.0, 0.0, 4.0]
    assert pay_twice(ledger_ref(made), 0, 2.0) == 8.0  # the limit holds


def test_arrays_live_as_long_as_the_reference_and_no_longer() -> None:
    made = ledger()
    counts = [sys.getrefcount(made.amount)]  # outside an assertion, which would hold a reference of its own
    kept = ledger_ref(made)
    counts.append(sys.getrefcount(made.amount))
    for _ in range(100):
        pay_twice(kept, 1, 0.01)
    counts.append(sys.getrefcount(made.amount))
    del kept
    gc.collect()
    counts.append(sys.getrefcount(made.amount))
    free = counts[0]
    assert counts == [free, free + 1, free + 1, free]
    alone = ledger_ref(ledger())
    gc.collect()
    assert pay_twice(alone, 0, 1.0) == 4.0


def test_a_leaf_that_allocates_is_refused() -> None:
    @inner
    def made(count):
        return np.zeros(count)

    @leaf
    def total(count):
        return made(count).sum()

    with pytest.raises(TypingError):
        njit(lambda count: total(count))(3)


def test_there_is_no_field_of_another_name() -> None:
    with pytest.raises(TypingError, match="owners"):
        njit(lambda ledger: ledger.owners[0])(ledger_ref(ledger()))
