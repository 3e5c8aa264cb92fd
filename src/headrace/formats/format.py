"""The contract of a file format: what it holds, how it is recognised, how it is read and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "program",
    "platform",
    "grid",
    "plan",
    "pipeline",
    "deployment",
    "behaviour",
    "campaign",
    "experiment",
    "rules",
]
"""What a file can hold."""


@dataclass(frozen=True)
class Format:
    """One format for one kind of content; a module of formats lists its own as `FORMATS`.

    >>> Format("wfformat", "program", "WfCommons JSON", suffixes=(".json",)).matches("a.json.gz")
    5
    """

    name: str
    """What `headrace convert --to` calls it; unique within its kind."""
    kind: Kind
    description: str
    suffixes: tuple[str, ...] = ()
    """Endings of file names that select this format for writing."""
    sniff: Callable[[bytes], bool] | None = None
    """Whether a file that begins with these bytes (unpacked, without byte order mark and leading white space)
    has this format. A format that can be read but not sniffed is recognised by its suffix."""
    read: Callable[..., Any] | None = None
    """Takes a path. Plans and deployments also need what they were made for, as further arguments."""
    write: Callable[[Any, Path], None] | None = None
    packed: bool = True
    """Whether `.gz` may follow the suffixes; files are then packed when they are written."""

    def matches(self, path: str | Path) -> int:
        """The length of the longest suffix that the name of a file ends in, without `.gz`; 0 if there is none."""
        name = Path(path).name.lower()
        plain = name.removesuffix(".gz") if self.packed else name
        fitting = (suffix for suffix in self.suffixes if name.endswith(suffix) or plain.endswith(suffix))
        return max(map(len, fitting), default=0)
