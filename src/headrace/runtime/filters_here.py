"""Run an application in this process, one filter after the other: no parallelism, all buffers in memory.

For trying out an application, and as the reference for other runners.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from headrace.model.errors import UsageError
from headrace.runtime.filters import App, Buffer, Reader, Sendable, Sender, Unit, Work, cycle, flat, in_turn

Results = dict[str, list[bytes]]
"""The buffers sent by filters without outgoing streams, by filter."""


def run_here(app: App, copies: Mapping[str, int] | None = None) -> Results:
    """Run all units of work and return the results.

    With more than one copy of a filter, each producer sends its buffers round-robin, and readers get equal
    shares of the input. Memory: all buffers of one unit.

    >>> from headrace.runtime.filters import Filter
    >>> class Words(Reader):
    ...     def read(self, out): out.send(b"to be or not to be")
    >>> class Count(Filter):
    ...     def process(self, buffer, out): out.send(b"%d" % len(buffer.data.split()))
    >>> app = App("words")
    >>> _ = app.filter("words", Words), app.filter("count", Count, inputs=["words"])
    >>> run_here(app)
    {'count': [b'6']}
    """
    counts = dict.fromkeys(app.order, 1) | dict(copies or {})
    for name, count in counts.items():
        if name not in app.filters or count < 1:
            raise UsageError(
                f"{count} copies of {name!r}",
                where=app.name,
                hint="give 1 or more, for a filter of the application",
            )
    results: Results = {name: [] for name in app.order if not app.out_of(name)}
    made = {name: [app.make(name) for _ in range(count)] for name, count in counts.items()}
    for unit in app.units:
        waiting: dict[str, list[list[bytes]]] = {s.name: [[] for _ in made[s.target]] for s in app.streams}
        for name in app.order:
            for number, copy in enumerate(made[name]):
                with tempfile.TemporaryDirectory(prefix="headrace-unit-") as folder:
                    work = share_of(unit, Path(folder), number, counts[name])
                    if isinstance(copy, Reader):
                        copy.prepare(work)
                    arrived = [
                        [Buffer(s.name, data) for data in waiting[s.name][number]] for s in app.into(name)
                    ]
                    out = _Dealer(app, name, waiting, results.get(name, []), number)
                    cycle(copy, work, in_turn(arrived), out)
    return results


def share_of(unit: Unit, folder: Path, number: int, copies: int) -> Work:
    """The unit as seen by copy `number` of `copies`, with equal shares."""
    return Work(unit.name, unit.settings, folder, number / copies, (number + 1) / copies)


class _Dealer(Sender):
    """Sends buffers round-robin to the copies of the next filter, starting with its own number."""

    def __init__(
        self, app: App, name: str, waiting: dict[str, list[list[bytes]]], results: list[bytes], number: int
    ) -> None:
        super().__init__(app, name)
        self._waiting = waiting
        self._results = results
        self._next = dict.fromkeys(waiting, number)

    def send(self, data: Sendable, stream: str = "") -> None:
        data = flat(data)
        chosen = self.checked(data, stream)
        if not chosen:
            self._results.append(bytes(data))
            return
        copies = self._waiting[chosen]
        copies[self._next[chosen] % len(copies)].append(bytes(data))
        self._next[chosen] += 1
