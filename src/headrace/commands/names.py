"""Names of schedulers on the command line: in any case, and completed by the shell."""

from __future__ import annotations


def scheduler_name(text: str) -> str:
    """A name as it is registered; `file.py:Class` and unknown names as they are."""
    from headrace.planners.registry import registered_name

    return registered_name(text)


def scheduler_names() -> list[str]:
    """All schedulers, for completion."""
    from headrace.planners.registry import names

    return names()


def complete_scheduler(incomplete: str) -> list[str]:
    """Schedulers whose name begins like this.

    >>> complete_scheduler("HEF")
    ['heft']
    """
    return [name for name in scheduler_names() if name.startswith(incomplete.lower())]
