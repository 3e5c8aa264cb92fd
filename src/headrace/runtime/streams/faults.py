"""What ends an attempt of a stream run."""

from __future__ import annotations


class Fault(Exception):
    """Something that ends an attempt."""

    def __init__(
        self, problem: str, where: str, hint: str = "", *, host: str = "", link: bool = False, unit: int = 0
    ) -> None:
        super().__init__(problem)
        self.problem, self.where, self.hint = problem, where, hint
        self.host = host
        """The host that was lost, if one was."""
        self.link = link
        """Whether only a connection was lost, which has a cause elsewhere."""
        self.unit = unit
        """The unit in which it happened."""


def lost_host(host: str) -> Fault:
    """A host that is gone."""
    return Fault("the host was lost", host, "see whether it still runs", host=host)
