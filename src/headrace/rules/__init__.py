"""The rules language: what a schedule must and should be. The functions here build rules from Python."""

from headrace.rules.builder import (
    apart,
    at_most,
    avoid,
    before,
    combine,
    finish_by,
    maximize,
    minimize,
    on,
    prefer,
    require,
    start_after,
    together,
)

__all__ = [
    "apart",
    "at_most",
    "avoid",
    "before",
    "combine",
    "finish_by",
    "maximize",
    "minimize",
    "on",
    "prefer",
    "require",
    "start_after",
    "together",
]
