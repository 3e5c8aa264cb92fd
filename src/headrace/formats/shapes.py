"""Validate untrusted JSON against a declared structure; the error names the offending field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import ConfigDict, FailFast, Field, StringConstraints, ValidationError

from headrace.model.errors import BadFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import TypeAdapter

T = TypeVar("T")

MAX_VALUES = 50_000_000
"""Maximum number of values (counted by commas) in a document: bounds the memory that parsing takes."""
MAX_NUMBER = 1e18
"""Seconds and bytes beyond this are assumed to be mistakes."""

_KINDS = ("str", "int", "float", "bool", "none")
"""What pydantic adds to the location of a value that may be one of several kinds."""

STRICT = ConfigDict(strict=True, allow_inf_nan=False)
"""Text does not pass for a number, nor NaN for a quantity. Undeclared keys are ignored."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Names = Annotated[list[Name], FailFast()]
Amount = Annotated[float, Field(ge=0, le=MAX_NUMBER)]


def read_shape(adapter: TypeAdapter[T], data: bytes, where: str, *, max_values: int = MAX_VALUES) -> T:
    """Parse and validate in one pass, without building Python values for undeclared keys: O(bytes)."""
    if data.count(b",") > max_values:
        raise BadFile(f"contains more than {max_values} values", where=where, hint="split it")
    try:
        return adapter.validate_json(data)
    except ValidationError as error:
        raise _one_error(error, where) from None


def place(location: Sequence[str | int]) -> str:
    """
    >>> place(("workflow", "tasks", 17, "files", 2))
    'workflow.tasks[17].files[2]'
    """
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def shorten(value: object, limit: int = 80) -> str:
    """A value for a message, at most `limit` characters long and cheap for values of any size.

    >>> shorten("x" * 1000, 12)
    "'xxxxxxxx..."
    """
    if isinstance(value, str):
        value = value[:limit]
    elif isinstance(value, (list, dict)) and value:
        return f"a list of {len(value)}" if isinstance(value, list) else f"an object of {len(value)}"
    elif isinstance(value, int) and value.bit_length() > 4000:  # repr refuses longer ones
        return "a number of more than 1000 digits"
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _one_error(error: ValidationError, where: str) -> BadFile:
    found: list[Any] = list(error.errors(include_url=False))
    first = found[0]
    if first["type"] == "json_invalid":
        return BadFile(
            f"not valid JSON: {first['ctx']['error']}", where=where, hint="fix the file at that position"
        )
    location, wanted = first["loc"], first["msg"][0].lower() + first["msg"][1:]
    if location and location[-1] in _KINDS:  # one error for each kind of value that could stand here
        location = location[:-1]
        expected = (
            each["msg"].removeprefix("Input should be ") for each in found if each["loc"][:-1] == location
        )
        wanted = f"input should be {' or '.join(dict.fromkeys(expected))}"
    at = place(location) or "the document"
    if first["type"] == "missing":
        return BadFile(f"{at} is missing", where=where, hint="add it")
    return BadFile(
        f"{at} is {shorten(first['input'])}: {wanted}",
        where=where,
        hint="see docs/formats.md for the structure",
    )
