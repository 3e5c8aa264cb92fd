"""Parse untrusted TOML; errors name the line."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from headrace.model.errors import BadFile

# tomllib takes time quadratic in the length of a dotted key
_LONG_KEY = re.compile(rb"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){32}""")


def parse_toml(data: bytes, where: str) -> dict[str, Any]:
    """The tables of a document: O(bytes)."""
    long_key = _LONG_KEY.search(data)
    if long_key:
        line = data.count(b"\n", 0, long_key.start()) + 1
        raise BadFile(
            f"a dotted key in line {line} has more than 32 parts", where=where, hint="use [tables] instead"
        )
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadFile(
            f"not UTF-8 text: byte 0x{data[error.start]:02x} in line {line}",
            where=where,
            hint="save it as UTF-8",
        ) from None
    except RecursionError:
        raise BadFile(
            "not valid TOML: values are nested too deeply",
            where=where,
            hint="see docs/formats.md for the structure",
        ) from None
    except ValueError as error:
        raise BadFile(f"not valid TOML: {error}", where=where, hint="fix the file at that line") from None
