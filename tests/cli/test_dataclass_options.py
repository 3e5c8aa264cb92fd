"""Options declared as dataclass fields: the command that comes out, its help and its errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from headrace.commands.dataclass_options import expand_dataclasses, option, options_of
from headrace.core.replan_policy import ReplanPolicy
from headrace.model.errors import HeadraceError, UsageError
from headrace.runtime.run_policy import RunPolicy


@dataclass(frozen=True)
class Policy:
    events: Literal["S1", "S2", "once"] = field(
        default="S2", metadata={"option": "--events", "help": "When to plan."}
    )
    interval: float | Literal["auto"] = option("auto", "--interval", "Seconds.", metavar="SECONDS", min=0)
    hidden: int = 3


@dataclass(frozen=True)
class Config:
    policy: Policy = field(default_factory=Policy)
    runs: int = option(1, "--runs", "Runs.", min=1)
    gap: float = option(1e-4, "--gap", "Gap.")
    limit: int | None = option(None, "--limit", "Limit.", default_text="none")
    steal: bool = option(False, "--steal", "Steal.")
    idle: bool = option(True, "--idle", "Idle.")
    output: Path | None = option(None, "--output", "File.", short="-o", metavar="FILE")
    sources: tuple[str, ...] = option((), "--source", "Sources.")
    lambda_: float = option(0.5, "--lambda", "Rate.")


def call(*args: str) -> tuple[str, Config, str]:
    """What the function receives."""
    seen: list[Any] = []

    def command(
        name: Annotated[str, typer.Argument()], config: Config, on: Annotated[str, typer.Option("--on")] = "x"
    ) -> None:
        seen.extend((name, config, on))

    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(expand_dataclasses(command_with_types(command)))
    app(list(args), standalone_mode=False)
    return seen[0], seen[1], seen[2]


def command_with_types(function: Any) -> Any:
    """Annotations as objects: those of a local function cannot be looked up by name."""
    function.__annotations__ = {
        "name": Annotated[str, typer.Argument()],
        "config": Config,
        "on": Annotated[str, typer.Option("--on")],
        "return": None,
    }
    return function


def test_defaults_are_those_of_the_fields() -> None:
    assert call("p") == ("p", Config(), "x")


def test_every_type_is_read() -> None:
    name, config, on = call(
        *("p", "--on", "y", "--events", "once", "--interval", "2.5", "--runs", "4", "--gap", "0.5"),
        *(
            "--limit",
            "7",
            "--steal",
            "--no-idle",
            "-o",
            "a b",
            "--source",
            "s",
            "--source",
            "t",
            "--lambda",
            "1",
        ),
    )
    policy = Policy("once", 2.5)
    expected = Config(policy, 4, 0.5, 7, True, False, Path("a b"), ("s", "t"), 1.0)
    assert (name, config, on) == ("p", expected, "y")


def test_naming_every_default_changes_nothing() -> None:
    named = (
        "--events",
        "S2",
        "--interval",
        "auto",
        "--runs",
        "1",
        "--gap",
        "0.0001",
        "--idle",
        "--lambda",
        "0.5",
    )
    assert call("p", *named)[1] == Config()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--events", "S4"), "--events is 'S4' (try: one of S1, S2, once)"),
        (("--interval", "soon"), "--interval is 'soon' (try: auto, or a number of at least 0)"),
        (("--interval", "-1"), "--interval is '-1' (try: auto, or a number of at least 0)"),
        (("--interval", "nan"), "--interval is 'nan' (try: auto, or a number of at least 0)"),
        (("--runs", "0"), "--runs is '0' (try: a whole number of at least 1)"),
        (("--limit", "1.5"), "--limit is '1.5' (try: a whole number)"),
    ],
)
def test_a_wrong_value_is_a_usage_error_of_ours(given: tuple[str, str], said: str) -> None:
    with pytest.raises(UsageError) as found:
        call("p", *given)
    assert str(found.value) == f"headrace command: {said}"


def test_help_shows_defaults_and_choices() -> None:
    def command(config: Config) -> None: ...

    command.__annotations__ = {"config": Config, "return": None}
    app = typer.Typer(rich_markup_mode=None)
    app.command()(expand_dataclasses(command))
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    lines = {line.split()[0].rstrip(","): line for line in shown.splitlines() if line.strip().startswith("-")}
    assert "S1|S2|once" in lines["--events"]
    assert "[default: S2]" in lines["--events"]
    assert "SECONDS" in lines["--interval"]
    assert "[default: (none)]" in lines["--limit"]
    assert "[default: 0.0001]" in lines["--gap"]
    assert "hidden" not in shown


def test_one_option_twice_is_a_mistake_in_the_program() -> None:
    @dataclass
    class Twice:
        a: int = option(1, "--runs", "A.")
        b: int = option(1, "--runs", "B.")

    with pytest.raises(TypeError, match="runs"):
        options_of(Twice)


def test_a_type_that_no_option_can_have() -> None:
    @dataclass
    class Wrong:
        a: dict[str, int] = option(None, "--a", "A.")

    with pytest.raises(TypeError, match="dict"):
        _ = options_of(Wrong)[0].parameter


@pytest.mark.parametrize(
    ("record", "option_name"),
    [
        (RunPolicy, "--timeout"),
        (RunPolicy, "--backoff"),
        (RunPolicy, "--stall"),
        (ReplanPolicy, "--interval"),
    ],
)
def test_times_have_units(record: type, option_name: str) -> None:
    (found,) = [each for each in options_of(record) if each.name == option_name]
    assert (found.value("2 min"), found.value("1.5")) == (120.0, 1.5)
    with pytest.raises(HeadraceError, match="'soon' is not a time"):
        found.value("soon")
