"""`headrace` that ends by SIGKILL at a chosen write: python -m bench.resume_client POINT ARGUMENTS...

POINT is `-` for none, or WHAT:NUMBER:WHEN, such as journal:3:before. WHAT is `journal`, a transaction of the record, or
`file`, a result file; WHEN is `before` it is made permanent, or `after`. The points exist in this process only: they
are put around the functions that write.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

GROUP_SECONDS = 0.02
"""The record commits in groups of this length, so that there are more writes to end at."""


@dataclass
class Point:
    """The moment at which this process ends."""

    what: str
    number: int
    when: str
    seen: int = 0

    @classmethod
    def parse(cls, text: str) -> Point:
        what, number, when = text.split(":")
        return cls(what, int(number), when)

    def count(self) -> None:
        self.seen += 1

    def reached(self, when: str) -> None:
        if self.seen == self.number and when == self.when:
            os.kill(os.getpid(), signal.SIGKILL)


def around_journal(point: Point) -> None:
    """End inside a transaction, when all is written but the commit, or right after the commit."""
    from headrace.record.database import Database

    plain = Database.writing

    @contextmanager
    def writing(self: Database) -> Iterator[Any]:
        point.count()
        with plain(self) as connection:
            yield connection
            point.reached("before")
        point.reached("after")

    Database.writing = writing  # type: ignore[method-assign]


def around_files(point: Point) -> None:
    """End before a result file is written, or when it is and the record does not say so yet."""
    from headrace.record import result_files

    plain: Callable[..., str] = result_files.write_whole

    def write_whole(*args: Any, **kwargs: Any) -> str:
        point.count()
        point.reached("before")
        checksum = plain(*args, **kwargs)
        point.reached("after")
        return checksum

    result_files.write_whole = write_whole


def main(point: str, *arguments: str) -> None:
    from headrace import cli
    from headrace.record import journal

    journal.GROUP_SECONDS = GROUP_SECONDS
    if point != "-":
        chosen = Point.parse(point)
        {"journal": around_journal, "file": around_files}[chosen.what](chosen)
    sys.argv = ["headrace", *arguments]
    cli.main()


if __name__ == "__main__":
    main(*sys.argv[1:])
