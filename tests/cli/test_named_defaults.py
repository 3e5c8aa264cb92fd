"""Naming the default of an option changes nothing: every option of the commands that plan, simulate, run and deploy."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from headrace.cli import assemble, run_command
from headrace.commands import run as run_module

ROOT = Path(__file__).parents[2]
PIPELINES = ROOT / "examples/lpsched"
TIMES = {"seconds", "deciding"}
"""How long the command itself took."""


def named(command: str) -> Iterator[tuple[str, str | None]]:
    """Each option of a command that has a default which can be typed, and that default."""
    parameters = typer.main.get_command(assemble(command)).commands[command].params  # type: ignore[attr-defined]
    for parameter in parameters:
        default = parameter.default
        typed = parameter.param_type_name == "option" and parameter.name not in ("help", "as_json")
        flag = getattr(parameter, "is_flag", False) and not parameter.secondary_opts
        if typed and parameter.secondary_opts:
            yield (parameter.opts if default else parameter.secondary_opts)[0], None
        elif typed and not flag and default is not None and default != [] and default != ():
            yield parameter.opts[0], str(getattr(default, "value", default))


def said(option: str, default: str | None) -> list[str]:
    """The words of the command line that name a default; a switch has no value."""
    return [option] if default is None else [option, default]


SIMULATE, PLAN, COMPARE, DEPLOY, RUN = (
    dict(named(command)) for command in ("simulate", "plan", "compare", "deploy", "run")
)


def test_the_options_are_found() -> None:
    assert SIMULATE["--events"] == "once"
    assert SIMULATE["--ahead"] == "2"
    assert len(SIMULATE) > 15
    assert PLAN["--seed"] == "0"
    assert COMPARE["--schedulers"] == "heft,auto"
    assert DEPLOY["--gap"] == "0.0001"
    assert RUN["--time-scale"] == "1"


@pytest.fixture
def answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """What a command prints as JSON, without the time it took."""
    shutil.copy(ROOT / "tests/formats/data/srasearch-chameleon-30a-001.json.gz", tmp_path / "sra.json.gz")
    shutil.copy(ROOT / "examples/lab.toml", tmp_path / "lab.toml")
    for path in PIPELINES.glob("*.ini"):
        shutil.copy(path, tmp_path / path.name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "record"))

    def ask(*words: str) -> Any:
        capsys.readouterr()
        assert run_command([*words, "--json"]) == 0
        return without_times(json.loads(capsys.readouterr().out))

    return ask


def without_times(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: without_times(value) for key, value in found.items() if key not in TIMES}
    return [without_times(value) for value in found] if isinstance(found, list) else found


CASE = ("sra.json.gz", "--on", "lab.toml")


@pytest.mark.parametrize("scheduler", ["lheft", "workqueue", "dheft", "heft", "random-minmin", None])
def test_simulate(answer: Callable[..., Any], scheduler: str | None) -> None:
    chosen = () if scheduler is None else ("-s", scheduler)
    plain = answer("simulate", *CASE, *chosen)
    for option, default in SIMULATE.items():
        if option not in ("--on", "--scheduler"):
            assert answer("simulate", *CASE, *chosen, *said(option, default)) == plain, option


def test_simulate_with_everything_named(answer: Callable[..., Any]) -> None:
    named_all = [
        word for pair in SIMULATE.items() if pair[0] not in ("--on", "--scheduler") for word in said(*pair)
    ]
    assert answer("simulate", *CASE, "-s", "lheft", *named_all) == answer("simulate", *CASE, "-s", "lheft")
    assert answer("simulate", *CASE, "--scheduler", SIMULATE["--scheduler"]) == answer("simulate", *CASE)
    assert answer("simulate", CASE[0], "--on", "local") == answer("simulate", CASE[0])


@pytest.mark.parametrize("scheduler", ["lheft", "heft", "random-minmin", None])
def test_plan(answer: Callable[..., Any], scheduler: str | None) -> None:
    chosen = () if scheduler is None else ("-s", scheduler)
    plain = answer("plan", *CASE, *chosen)
    for option, default in PLAN.items():
        if option not in ("--on", "--scheduler"):
            assert answer("plan", *CASE, *chosen, *said(option, default)) == plain, option
    if scheduler is None:
        assert answer("plan", *CASE, "-s", PLAN["--scheduler"]) == plain


def test_compare(answer: Callable[..., Any]) -> None:
    plain = answer("compare", *CASE)
    for option, default in COMPARE.items():
        if option != "--on":
            assert answer("compare", *CASE, *said(option, default)) == plain, option


def test_deploy(answer: Callable[..., Any]) -> None:
    case = ("averager-1x2x1.ini", "--on", "ufmg.ini")
    plain = answer("deploy", *case)
    for option, default in DEPLOY.items():
        if option != "--on":
            assert answer("deploy", *case, *said(option, default)) == plain, option


class _Enough(Exception):
    """The run was about to start."""


def test_run_passes_on_the_same(answer: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of a real run, by what they ask for: two runs are never alike."""
    asked: list[tuple[Any, ...]] = []

    def note(program: Any, *words: Any, **more: Any) -> None:
        kept = {key: value for key, value in more.items() if key not in ("observe", "planned", "say")}
        asked.append(([task.name for task in program.tasks.values()], words, kept))
        raise _Enough

    monkeypatch.setattr(run_module, "execute", note)
    base = ("run", CASE[0], "--emulate", "--size-scale", "1e-6")
    given = [(), *(said(option, default) for option, default in RUN.items())]
    for words in given:
        with pytest.raises(_Enough):
            run_command([*base, *words])
    assert len(asked) == len(RUN) + 1
    assert all(each == asked[0] for each in asked)


@pytest.mark.slow
def test_a_real_run_with_every_default_named(answer: Callable[..., Any]) -> None:
    base = ("run", "sra.json.gz", "--emulate", "--time-scale", "0.0001", "--workers", "2")
    plain = answer(*base)
    words = [word for pair in RUN.items() if pair[0] != "--time-scale" for word in said(*pair)]
    again = answer(*base, *words)
    for found in (plain, again):
        found["tasks"] = sorted(task["id"] for task in found["tasks"])
        for varies in ("run", "makespan", "planned", "bound", "results", "deviations"):
            found.pop(varies)
    assert again == plain
