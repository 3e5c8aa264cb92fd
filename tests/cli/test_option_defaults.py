"""The declared default of every option is the effective one: naming it changes nothing."""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import typer

from headrace.cli import COMMANDS, assemble
from headrace.commands.dataclass_options import Option, build, options_of

TREE = typer.main.get_command(assemble(*COMMANDS))
PARAMETERS = [
    pytest.param(parameter, id=f"{name}-{parameter.name}")
    for name, command in TREE.commands.items()  # type: ignore[attr-defined]
    for parameter in command.params
    if parameter.param_type_name == "option" and parameter.name != "help"
]


def records_of(name: str) -> list[Any]:
    function = getattr(import_module(f"headrace.commands.{name}"), name)
    hints = get_type_hints(function, include_extras=True)
    return [hint for hint in hints.values() if inspect.isclass(hint) and is_dataclass(hint)]


OPTIONS = [
    pytest.param(found, id=f"{name}-{found.destination}")
    for name in COMMANDS
    for record in records_of(name)
    for found in options_of(record)
]


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_every_option_has_help_and_a_default_that_can_be_named(parameter: Any) -> None:
    assert parameter.help
    assert parameter.help[0].isupper()
    assert parameter.help.endswith(".")
    if parameter.default is None and not parameter.required:
        assert parameter.show_default is True or isinstance(parameter.show_default, str)


@pytest.mark.parametrize("found", OPTIONS)
def test_the_default_typed_out_is_the_default(found: Option) -> None:
    shown = found.parameter.default
    if shown is not inspect.Parameter.empty:
        assert found.value(shown) == found.default


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_given_is_the_record_as_declared(name: str) -> None:
    for record in records_of(name):
        shown = {found.destination: found.parameter.default for found in options_of(record)}
        assert build(record, shown) == record()


@pytest.mark.parametrize("found", OPTIONS)
def test_an_option_without_a_value_says_what_that_means(found: Option) -> None:
    """None is the absence of a file, or stands for what the help says."""
    if found.default is None:
        metavar = found.field.metadata.get("metavar")
        assert metavar == "FILE" or "default_text" in found.field.metadata


def test_every_command_has_its_file() -> None:
    folder = Path(import_module("headrace.commands").__file__ or "").parent
    assert all((folder / f"{name}.py").exists() for name in COMMANDS)
