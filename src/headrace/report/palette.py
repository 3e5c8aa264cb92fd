"""Colours for kinds of tasks, chosen so that colour-blind readers can tell them apart."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.report.chart import AWAY, FAILED, LEVELS, STOPPED, TRANSFER, Bar

MOST_KINDS = 8
OTHER = "\0other"
PALETTE = ("#4477aa", "#ddaa33", "#228833", "#cc6677", "#66ccee", "#882255", "#999933", "#332288")
_FIXED = {
    TRANSFER: "#777777",
    FAILED: "#bb2200",
    STOPPED: "#e8a090",
    AWAY: "#e4e4e4",
    OTHER: "#b4b4b4",
    **dict(zip(LEVELS, ("#d6e6f4", "#9dc3e1", "#5d99c9", "#2b6ca8", "#0b3d73"), strict=True)),
}
"""Keys with a fixed colour; those of utilisation levels are darker for higher levels."""
_NAMES = {
    TRANSFER: "transfer",
    FAILED: "failed",
    STOPPED: "stopped",
    AWAY: "host away",
    OTHER: "other",
    "": "task",
    **dict(
        zip(
            LEVELS,
            ("up to 25 % in use", "over 25 %", "over 50 %", "over 75 %", "all in use"),
            strict=True,
        )
    ),
}


def colours(bars: Iterable[Bar]) -> dict[str, str]:
    """A colour for each key, in the order of a legend.

    The kinds that take most time get distinct colours, assigned in order of name so that charts of one
    program agree; the remaining kinds share one.
    """
    seconds: dict[str, float] = {}
    for bar in bars:
        seconds[bar.colour_key] = seconds.get(bar.colour_key, 0.0) + bar.finish - bar.start
    kinds = sorted((k for k in seconds if k not in _FIXED), key=lambda k: (-seconds[k], k))
    chosen = dict(zip(sorted(kinds[:MOST_KINDS]), PALETTE, strict=False))
    if len(kinds) > MOST_KINDS:
        chosen[OTHER] = _FIXED[OTHER]
    return chosen | {key: _FIXED[key] for key in (*LEVELS, TRANSFER, FAILED, STOPPED, AWAY) if key in seconds}


def key_name(key: str) -> str:
    """What a legend calls a colour key.

    >>> key_name(""), key_name("fft"), key_name(TRANSFER)
    ('task', 'fft', 'transfer')
    """
    return _NAMES.get(key, key)


def text_colour(background: str) -> str:
    """Black or white, whichever reads better on this colour.

    >>> text_colour("#332288"), text_colour("#66ccee")
    ('#fff', '#111')
    """
    red, green, blue = (int(background[i : i + 2], 16) for i in (1, 3, 5))
    return "#111" if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "#fff"
