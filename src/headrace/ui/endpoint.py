"""What a route of the page is: one line in a list, so that descriptions and tests can enumerate them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from headrace.model.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from headrace.ui.workspace import Workspace


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
