"""Named resources in one text: `gpu=1; fpga=2`."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.formats.shapes import shorten
from headrace.model.errors import BadProgram
from headrace.model.needs import checked_resources

_HINT = "write names and whole numbers, such as gpu=1; fpga=2"


def read_resources(text: str, where: str = "") -> dict[str, int]:
    """
    Raises:
        BadProgram: It is not a list of names and whole numbers, or a name appears twice.

    >>> read_resources("gpu=1; fpga = 2"), read_resources("")
    ({'gpu': 1, 'fpga': 2}, {})
    """
    found: dict[str, int] = {}
    for part in text.split(";"):
        name, mark, count = (piece.strip() for piece in part.rpartition("="))
        if not part.strip():
            continue
        if not mark or not name or not (count.isascii() and count.isdecimal() and len(count) <= 10):
            raise BadProgram(f"resources is {shorten(text)}", where=where, hint=_HINT)
        if name in found:
            raise BadProgram(f"resources has {shorten(name)} twice", where=where, hint=_HINT)
        found[name] = int(count)
    return checked_resources(found, where, BadProgram)


def write_resources(resources: Mapping[str, int], where: str = "") -> str:
    """
    >>> write_resources({"gpu": 1, "fpga": 2})
    'gpu=1;fpga=2'
    """
    for name in resources:
        if ";" in name or name != name.strip():
            raise BadProgram(
                f"the resource {shorten(name)} cannot be written here",
                where=where,
                hint="use a name without ; and blanks around it, or write WfFormat",
            )
    return ";".join(f"{name}={count}" for name, count in resources.items())
