"""Say so when loops are compiled: on first use that takes longer than many a simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

COMPILING = "compiling, once for this installation; it takes up to a minute"


def announce_compiling(say: Callable[[], None]) -> Callable[[], None]:
    """From now on `say` is called when the first loop has to be compiled, not for those kept from before.

    What it returns ends that.
    """
    from numba.core import event

    class FirstCompilation(event.Listener):  # type: ignore[misc]
        said = False

        def on_start(self, event: Any) -> None:
            if not self.said:
                self.said = True
                say()

        def on_end(self, event: Any) -> None:
            """Nothing to say: what was asked for goes on."""

    listener = FirstCompilation()
    event.register("numba:compile", listener)
    return lambda: event.unregister("numba:compile", listener)


@contextmanager
def compiling_told(say: Callable[[str], None]) -> Iterator[None]:
    """While this is open, it is said once that loops are compiled, if they are.

    >>> from numba import njit
    >>> with compiling_told(print):
    ...     njit(lambda number: number + 1)(1)
    compiling, once for this installation; it takes up to a minute
    2
    """
    end = announce_compiling(lambda: say(COMPILING))
    try:
        yield
    finally:
        end()
