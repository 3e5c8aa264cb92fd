"""Command-line options declared as fields of dataclasses.

A field is an option if its metadata names one:

    interval: float = field(default=10.0, metadata={"option": "--interval", "help": "Seconds between plans."})

`option` below writes the same more briefly. The metadata may also hold `short` ("-s"), `metavar`, `min`
(the least number accepted), `default_text` (what a default of None stands for), `parse` (text to value) and `complete`
(what a shell suggests).
"""

from __future__ import annotations

import inspect
import keyword
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from headrace.commands.general_options import group_of
from headrace.model.errors import UsageError

TIME = "TIME"
"""The metavar of times that may have a unit."""
METAVARS = {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "PATH"}


def option(default: Any, name: str, help: str, **more: Any) -> Any:
    """A dataclass field that is the option `name`; `more` is further metadata.

    >>> @dataclass
    ... class Repeat:
    ...     runs: int = option(1, "--runs", "Number of runs.", min=1)
    >>> Repeat().runs
    1
    """
    return field(default=default, metadata={"option": name, "help": help, **more})


def expand_dataclasses(function: Callable[..., None]) -> Callable[..., None]:
    """The function as a command: each parameter of a dataclass type is replaced by the options of its fields.

    Fields that are dataclasses themselves are expanded as well; fields without an option keep their defaults.

    Raises
    ------
    TypeError
        If two fields have the same option, or a field has a type that no option can have.
    """
    hints = get_type_hints(function, include_extras=True)
    records = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in records:
            parameters += [found.parameter for found in options_of(records[parameter.name])]
        else:
            annotated = parameter.replace(
                annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY
            )
            parameters.append(annotated)

    def command(**given: Any) -> None:
        plain = {name: value for name, value in given.items() if name in hints and name not in records}
        try:
            built = {name: build(record, given) for name, record in records.items()}
        except UsageError as error:
            raise error.at(f"headrace {function.__name__}") from None
        function(**plain, **built)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


@dataclass(frozen=True)
class Option:
    """One option: a field and the type that it was declared with."""

    field: Field[Any]
    hint: Any
    record: str = ""
    """The name of the dataclass."""

    @property
    def name(self) -> str:
        return str(self.field.metadata["option"])

    @property
    def destination(self) -> str:
        """The name of the parameter that the command receives."""
        name = self.name.lstrip("-").replace("-", "_")
        return f"{name}_" if keyword.iskeyword(name) else name

    @property
    def default(self) -> Any:
        made = self.field.default_factory
        return self.field.default if made is MISSING else made()

    @property
    def parameter(self) -> inspect.Parameter:
        """What typer reads. All values but switches arrive as text, so that errors are worded in one place."""
        metadata = self.field.metadata
        names = [self.name, *([metadata["short"]] if "short" in metadata else [])]
        default: Any = self.default
        if self.hint is bool:
            kind: Any = bool
            names[0] += f"/--no-{self.name.removeprefix('--')}" if default else ""
        elif _is_tuple(self.hint):
            kind, default = (
                (list[str] | None, None)
                if default is None
                else (list[str], [as_text(value) for value in default])
            )
        else:
            optional = default is None
            unit = " s" if metadata.get("metavar") == TIME else ""
            kind, default = (str | None, None) if optional else (str, as_text(default) + unit)
        info = typer.Option(
            *names,
            help=metadata["help"],
            metavar=None if self.hint is bool else metadata.get("metavar", metavar_of(self.hint)),
            show_default=metadata.get("default_text", True),
            rich_help_panel=group_of(self.name, self.record),
            autocompletion=self._completions(),
        )
        if self.field.default is MISSING and self.field.default_factory is MISSING:
            default = inspect.Parameter.empty
        return inspect.Parameter(
            self.destination,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[kind, info],
        )

    def _completions(self) -> Callable[[str], list[str]] | None:
        """What a shell suggests after the option; None: names of files."""
        if self.hint is bool:
            return None
        complete = self.field.metadata.get("complete")
        choices = [text for kind in alternatives(self.hint) if _is_choice(kind) for text in get_args(kind)]
        if complete is None and not choices:
            return None

        def completions(incomplete: str) -> list[str]:
            known = choices if complete is None else complete()
            return [text for text in known if text.startswith(incomplete.lower())]

        return completions

    def value(self, given: Any) -> Any:
        """The value of the field, from the text on the command line."""
        if given is None or isinstance(given, bool):
            return given
        parse = self.field.metadata.get("parse")
        if parse is None:
            parse = partial(parse_value, self.hint, name=self.name, least=self.field.metadata.get("min"))
        return tuple(parse(text) for text in given) if isinstance(given, list) else parse(given)


def options_of(record: type) -> list[Option]:
    """The options of a dataclass, in the order of its fields."""
    found = list(_options_of(record))
    names = [option.destination for option in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise TypeError(f"{record.__name__} declares twice: {', '.join(sorted(twice))}")
    return found


def _options_of(record: type) -> Iterator[Option]:
    hints = get_type_hints(record)
    for declared in fields(record):
        hint = hints[declared.name]
        if "option" in declared.metadata:
            yield Option(declared, hint, record.__name__)
        elif isinstance(hint, type) and is_dataclass(hint):
            yield from _options_of(hint)


def build(record: type, given: Mapping[str, Any]) -> Any:
    """The dataclass with the values of its options, given by destination."""
    hints = get_type_hints(record)
    values: dict[str, Any] = {}
    for declared in fields(record):
        hint = hints[declared.name]
        if "option" in declared.metadata:
            found = Option(declared, hint, record.__name__)
            values[declared.name] = found.value(given[found.destination])
        elif isinstance(hint, type) and is_dataclass(hint):
            values[declared.name] = build(hint, given)
    return record(**values)


def parse_value(hint: Any, text: str, *, name: str, least: float | None = None) -> Any:
    """Text as a value of this type; the error names the option and what it accepts.

    >>> parse_value(float | Literal["auto"], "auto", name="--interval")
    'auto'
    >>> parse_value(int, "many", name="--runs", least=1)
    Traceback (most recent call last):
        ...
    headrace.model.errors.UsageError: --runs is 'many' (try: a whole number of at least 1)
    """
    for kind in alternatives(hint):
        if _is_choice(kind):
            for choice in get_args(kind):
                if text.casefold() == str(choice).casefold():
                    return choice
        elif kind in (int, float):
            number = _number(kind, text)
            if number is not None and (least is None or number >= least):
                return number
        else:
            return kind(text)
    raise UsageError(f"{name} is {text!r}", hint=accepted(hint, least))


def _number(kind: Callable[[str], float], text: str) -> float | None:
    try:
        number = kind(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def alternatives(hint: Any) -> list[Any]:
    """The types that a value may have, choices first and text last; for a tuple, those of its elements."""
    if _is_tuple(hint):
        (of,) = (kind for kind in (hint, *get_args(hint)) if get_origin(kind) is tuple)
        return alternatives(get_args(of)[0])
    found = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    given = [kind for kind in found if kind is not NoneType]
    for kind in given:
        if not _is_choice(kind) and kind not in METAVARS:
            raise TypeError(f"an option cannot be of type {kind}")
    return sorted(given, key=lambda kind: (kind in (str, Path), not _is_choice(kind)))


def _is_tuple(hint: Any) -> bool:
    """Whether the option may be repeated; a tuple or None may also be left out."""
    return get_origin(hint) is tuple or any(get_origin(kind) is tuple for kind in get_args(hint))


def _is_choice(kind: Any) -> bool:
    return get_origin(kind) is Literal


def accepted(hint: Any, least: float | None = None) -> str:
    """The accepted values in words.

    >>> accepted(float | Literal["tuned"], 0)
    'tuned, or a number of at least 0'
    """
    bound = "" if least is None else f" of at least {least:g}"
    words = []
    for kind in alternatives(hint):
        if _is_choice(kind):
            choices = get_args(kind)
            words.append(choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}")
        else:
            words.append({int: f"a whole number{bound}", float: f"a number{bound}"}.get(kind, "text"))
    return ", or ".join(words)


def metavar_of(hint: Any) -> str:
    """
    >>> metavar_of(Literal["S1", "S2"]), metavar_of(float | Literal["tuned"]), metavar_of(Path | None)
    ('S1|S2', 'tuned|NUMBER', 'PATH')
    """
    shown: list[str] = []
    for kind in alternatives(hint):
        shown += get_args(kind) if _is_choice(kind) else [METAVARS[kind]]
    return "|".join(shown)


def as_text(value: Any) -> str:
    """A value as it would be typed: parsing the text gives the value back.

    >>> as_text(10.0), as_text(1e-4), as_text(1 / 3)
    ('10', '0.0001', '0.3333333333333333')
    """
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)
