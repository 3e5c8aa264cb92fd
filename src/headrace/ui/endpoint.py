"""What a route of the page is: one line in a list, so that descriptions and tests can enumerate them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.model.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from headrace.ui.workspace import Workspace

_MAX_TEXT = 1_000_000
_KINDS: dict[str, tuple[type, ...]] = {"bool": (bool,), "float": (int, float), "int": (int,), "str": (str,)}
Asked = TypeVar("Asked", bound="DataclassInstance")


@dataclass(frozen=True)
class Endpoint:
    """One route that answers in JSON; `answer` is given the path's parameters and the body."""

    method: str
    path: str
    line: str
    answer: Callable[[Workspace, Mapping[str, str], Mapping[str, Any]], Any]
    body: Mapping[str, str] | None = None
    """Names of the body's fields with their JSON types; None: it has no body."""


def json_types(kind: type[DataclassInstance]) -> dict[str, str]:
    """The JSON types of a request's fields."""
    names = {"bool": "boolean", "float": "number", "int": "integer"}
    return {one.name: names.get(str(one.type), "string") for one in fields(kind)}


def request_of(kind: type[Asked], body: Mapping[str, Any]) -> Asked:
    """A request with checked names and types."""
    known = {one.name: one for one in fields(kind)}
    for name, value in body.items():
        if name not in known:
            raise UsageError(f"unknown field {name[:100]!r}", hint=f"known are {', '.join(known)}")
        right = isinstance(value, _KINDS[str(known[name].type)])
        right &= isinstance(value, bool) == (known[name].type == "bool")
        if not right or (isinstance(value, str) and len(value) > _MAX_TEXT):
            raise UsageError(f"{name} is not what it should be", hint="see /api/openapi.json")
    for name, one in known.items():
        if name not in body and one.default is MISSING:
            raise UsageError(f"no {name}", hint=f'send {{"{name}": ...}}')
    return kind(**body)


def number_of(path: Mapping[str, str], key: str) -> int:
    """A number of the path."""
    if not path[key].isascii() or not path[key].isdigit() or len(path[key]) > 12:
        raise UsageError(f"{key} is a number", hint="see /api/openapi.json")
    return int(path[key])


def text_of(body: Mapping[str, Any], key: str) -> str:
    """A text that a request must have."""
    value = body.get(key)
    if not isinstance(value, str):
        raise UsageError(f"no {key}", hint=f'send {{"{key}": "..."}}')
    return value


def texts_of(body: Mapping[str, Any], key: str, most: int = 1000) -> list[str]:
    """A list of texts; empty if it is absent."""
    value = body.get(key, [])
    if not isinstance(value, list) or len(value) > most or not all(isinstance(one, str) for one in value):
        raise UsageError(f"{key} is not a list of texts", hint=f'send {{"{key}": ["..."]}}')
    return value
