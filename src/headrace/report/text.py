"""Display of external names: escaping, measuring, shortening."""

from __future__ import annotations

import re
import unicodedata
from html import escape

_UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_BREAKS = re.compile(r"[\t\r\n]+")
_NARROW = frozenset("iljtf.,:;'|!()[] I")
_BROAD = frozenset("mwMW@%—…")


def clean(text: str) -> str:
    """Text as one line, without characters that are unsafe in XML or on a terminal.

    >>> clean("a\\x1b[31m\\nb")
    'a\\ufffd[31m b'
    """
    return _UNSHOWABLE.sub("\ufffd", _BREAKS.sub(" ", text))


def markup(text: str) -> str:
    """Text escaped for XML or HTML, including attributes.

    >>> markup('<b> & "c"')
    '&lt;b&gt; &amp; &quot;c&quot;'
    """
    return escape(clean(text))


def text_width(text: str, size: float) -> float:
    """Estimated width in pixels, rather too large than too small: the reader's font is unknown.

    >>> text_width("iii", 10) < text_width("mmm", 10)
    True
    """
    return size * sum(_share(character) for character in text)


def white_behind(text: str, size: float, x: float, y: float, anchor: str = "start") -> str:
    """A white box for a label at this position, so that nothing behind it makes it unreadable.

    >>> white_behind("x", 10.0, 50.0, 20.0, "end")
    '<rect x="41.6" y="10.0" width="10.4" height="13" fill="#fff"/>'
    """
    wide = text_width(text, size)
    left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    box = f'x="{left - 2:.1f}" y="{y - size:.1f}" width="{wide + 4:.1f}" height="{size + 3:g}"'
    return f'<rect {box} fill="#fff"/>'


def shorten(text: str, size: float, room: float) -> str:
    """The text, or its beginning and an ellipsis, to fit into `room` pixels; "" if nothing fits.

    >>> shorten("a_long_name_of_a_task", 10, 60)
    'a_long_n…'
    """
    if text_width(text, size) <= room + 1e-6:  # room may be the width of this text, up to rounding
        return text
    left = room - size * _share("…")
    kept = 0
    for character in text:
        left -= size * _share(character)
        if left < 0:
            break
        kept += 1
    return text[:kept].rstrip() + "…" if kept else ""


def _share(character: str) -> float:
    if character in _NARROW:
        return 0.4
    if character in _BROAD or unicodedata.east_asian_width(character) in "WF":
        return 1.05
    return 0.74 if character.isupper() else 0.64
