"""Events as plain tuples: messages from the plugin inside the engine to the client."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from headrace.model import errors
from headrace.model.errors import HeadraceError
from headrace.model.events import (
    DataMoved,
    Event,
    HostJoined,
    HostLeft,
    HostPaused,
    RuleDropped,
    Started,
    TaskErred,
    TaskFinished,
)

_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (Started, TaskFinished, TaskErred, DataMoved, HostLeft, HostPaused, HostJoined, RuleDropped)
}
_FIELDS = {name: tuple(f.name for f in fields(kind)) for name, kind in _KINDS.items()}


def encode_event(event: Event) -> tuple[Any, ...]:
    """
    >>> encode_event(HostLeft(2.0, "w1"))
    ('HostLeft', 2.0, 'w1')
    """
    name = type(event).__name__
    return (name, *(_sendable(getattr(event, field)) for field in _FIELDS[name]))


def _sendable(value: Any) -> Any:
    """Text as UTF-8 can hold it: a lone surrogate in it would end the connection.

    >>> _sendable("a" + chr(0xDC80)), _sendable(1.5)
    ('a?', 1.5)
    """
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def decode_event(message: tuple[Any, ...]) -> Event:
    """
    >>> decode_event(("HostLeft", 2.0, "w1"))
    HostLeft(time=2.0, host='w1')
    """
    event: Event = _KINDS[message[0]](*message[1:])
    return event


def encode_error(error: HeadraceError) -> tuple[str, str, str, str]:
    """
    >>> encode_error(errors.NoPlan("no host is left", where="lab"))
    ('NoPlan', 'no host is left', 'lab', '')
    """
    return (type(error).__name__, *map(_sendable, (error.problem, error.where, error.hint)))


def decode_error(message: tuple[str, str, str, str]) -> HeadraceError:
    """The same error on the client's side; an unknown class becomes the base class."""
    kind = getattr(errors, message[0], HeadraceError)
    if not (isinstance(kind, type) and issubclass(kind, HeadraceError)):
        kind = HeadraceError
    return kind(message[1], where=message[2], hint=message[3])
