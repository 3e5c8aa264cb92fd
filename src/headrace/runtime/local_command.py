"""A command whose files have names of their own, whatever the items are called that hold them."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.model.program import Command


@dataclass(frozen=True, slots=True)
class LocalCommand(Command):
    """A command that knows its task and items by these names, in the order of its task's items.

    In a merged program an item has the name of its combination; the command still finds the files that it names.
    """

    task: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
