"""What holds for all commands: version, help, quiet and verbose, completion, default settings, stdin, plain text."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from cli.command import SOURCE, headrace
from headrace import __version__
from headrace.arrays.code_cache import cache_root
from headrace.cli import COMMANDS, assemble, run_command
from headrace.commands.config_file import defaults_from
from headrace.model.errors import BadFile, HeadraceError

LAB = '[[site]]\nname = "s"\nbandwidth = "1 MB/s"\n[[site.host]]\nname = "h1"\n[[site.host]]\nname = "h2"\n'
TREE = typer.main.get_command(assemble(*COMMANDS))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lab.toml").write_text(LAB)
    (tmp_path / "two.dot").write_text("digraph two { a [work=2]; a -> b [bytes=100] }")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "record"))
    return tmp_path


def piped(folder: Path, text: str, *args: str) -> subprocess.CompletedProcess[str]:
    """The command with something on its stdin."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(SOURCE)}
    environment["HEADRACE_CACHE_DIR"] = str(cache_root())
    command = [sys.executable, "-m", "headrace.cli", *args]
    return subprocess.run(
        command, input=text, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def test_the_package_is_the_command(folder: Path) -> None:
    command = [sys.executable, "-m", "headrace", "--version"]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"headrace {__version__}\n"


def test_version_and_bare_command(folder: Path) -> None:
    assert headrace("--version", cwd=folder).out == f"headrace {__version__}\n"
    bare = headrace(cwd=folder)
    assert (bare.code, bare.err) == (0, "")
    assert bare.out.startswith("Usage: headrace")


def test_no_summary_of_a_command_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["--help"])
    listed = capsys.readouterr().out.split("Commands:")[1]
    assert "..." not in listed
    for name, line in COMMANDS.items():
        assert re.search(rf"  {name} +{re.escape(line)}\n", listed)


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_listed_once_in_groups(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    run_command([name, "--help"])
    shown = capsys.readouterr().out
    options = [o for p in TREE.commands[name].params if p.param_type_name == "option" for o in p.opts]  # type: ignore[attr-defined]
    for option in options:
        assert len(re.findall(rf"^  (?:-\w, )?{option}(?=[ ,\n])", shown, re.MULTILINE)) <= 1
        assert option in shown
    assert shown.index("General options:") > shown.rindex("Output:") if "Output:" in shown else True


def test_every_command_that_answers_has_json() -> None:
    without = {
        name
        for name, command in TREE.commands.items()  # type: ignore[attr-defined]
        if not any("--json" in each.opts for each in command.params)
    }
    assert without == {"ui"}


def test_groups_of_run(capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["run", "--help"])
    groups = re.findall(r"^(\w[\w ,]+):$", capsys.readouterr().out, re.MULTILINE)
    assert groups == [
        "Arguments", "Options", "Platform and workers", "Emulation", "Failures, limits and what is kept",
        "Certificates",
        "Output", "General options",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("plan", "headrace plan: missing argument 'PROGRAM' (try: headrace plan --help)"),
        ("plan a.json --time", "headrace plan: option '--time' requires an argument (try: headrace plan --help)"),
        ("warmup --workers 0", "headrace warmup: --workers is '0' (try: a whole number of at least 1)"),
        ("cancel --wait x", "headrace cancel: --wait is 'x' (try: a number of at least 0)"),
        ("logs last --attempt 1.5", "headrace logs: --attempt is '1.5' (try: a whole number of at least 1)"),
        ("campaign c.toml --workers=-1", "headrace campaign: --workers is '-1' (try: a whole number of at least 1)"),
        ("reproduce figure-11 --seeds x", "headrace reproduce: --seeds is 'x' (try: a whole number of at least 1)"),
        ("certificates tls --days 0", "headrace certificates: --days is '0' (try: a whole number of at least 1)"),
    ],
)  # fmt: skip
def test_wrong_usage_names_the_command_and_the_value(line: str, says: str, folder: Path) -> None:
    done = headrace(*line.split(), cwd=folder)
    assert (done.code, done.err) == (2, f"error: {says}\n")


def test_a_broken_settings_file_does_not_stop_help(folder: Path) -> None:
    (folder / "headrace.toml").write_text("x = [")
    assert headrace("--version", cwd=folder).code == 0
    assert headrace("--help", cwd=folder).code == 0
    assert headrace("schedulers", cwd=folder).code == 2


def test_defaults_of_times_have_a_unit(capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["run", "--help"])
    assert "[default: 20 s]" in capsys.readouterr().out


def test_names_in_any_case(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["PLAN", "two.dot", "--on", "lab.toml", "-s", "HEFT", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scheduler"] == "heft"
    run_command(["convert", "two.dot", "-", "--to", "GraphML"])
    assert "<graphml" in capsys.readouterr().out
    run_command(["simulate", "two.dot", "--on", "lab.toml", "-s", "Heft", "--events", "s1", "--json"])
    assert json.loads(capsys.readouterr().out)["scheduler"] == "heft"


def test_quiet_shows_no_progress_and_verbose_says_more(folder: Path) -> None:
    quiet = headrace("-q", "plan", "two.dot", "--on", "lab.toml", cwd=folder)
    assert (quiet.code, quiet.err) == (0, "")
    assert "makespan" in quiet.out
    told = headrace("plan", "two.dot", "--on", "lab.toml", "-v", cwd=folder)
    assert re.search(r"^reading two.dot: [\d.]+ m?s$", told.err, re.MULTILINE)
    failed = headrace("plan", "none.dot", "-v", cwd=folder)
    assert "Traceback" in failed.err
    assert failed.err.splitlines()[-1].startswith("error: none.dot")
    both = headrace("plan", "two.dot", "-v", "-q", cwd=folder)
    assert (both.code, "exclude each other" in both.err) == (2, True)


def test_a_dash_is_stdin(folder: Path) -> None:
    text = (folder / "two.dot").read_text()
    planned = piped(folder, text, "plan", "-", "--on", "lab.toml", "-o", "plan.json", "--json")
    assert json.loads(planned.stdout)["makespan"] == 3.0
    assert "program_file" not in json.loads((folder / "plan.json").read_text())
    converted = piped(folder, text, "convert", "-", "-", "--to", "wfformat")
    assert json.loads(converted.stdout)["schemaVersion"] == "1.5"


def test_convert_says_what_it_wrote_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["convert", "two.dot", "two.json", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told == {"source": "two.dot", "kind": "program", "file": "two.json", "format": "wfformat"}


def test_pictures_other_than_svg_are_refused_before_any_work(folder: Path) -> None:
    ended = headrace("plan", "none.dot", "--gantt", "x.PNG", cwd=folder)
    assert ended.code == 2
    assert ended.err == "error: x.PNG: pictures are drawn as SVG, not PNG (try: x.svg)\n"
    ended = headrace("plan", "none.dot", "--gantt", "x.html", cwd=folder)
    assert ended.err == "error: x.html: pictures are drawn as SVG, not HTML (try: x.svg)\n"


def test_output_that_is_not_for_a_terminal_has_no_blanks_at_line_ends(folder: Path) -> None:
    for args in (["schedulers"], ["plan", "two.dot", "--on", "lab.toml"]):
        shown = headrace(*args, cwd=folder)
        assert shown.code == 0, shown.err
        assert not re.search(r"[ \t]$", shown.out, re.MULTILINE)
        assert "\x1b" not in shown.out


def test_no_color_means_no_bold_either(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    from headrace.report.tables import print_table

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    coloured, plain = Terminal(), Terminal()
    print_table(["a"], [["b"]], stream=coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    print_table(["a"], [["b"]], stream=plain)
    assert "\x1b[1m" in coloured.getvalue()
    assert "\x1b" not in plain.getvalue()


def test_completion_of_commands_options_and_schedulers(folder: Path) -> None:
    def completed(words: str) -> list[str]:
        count = words.count(" ")
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(count), "_HEADRACE_COMPLETE": "complete_bash"}
        return headrace(cwd=folder, env=asked).out.split()

    assert completed("headrace si") == ["simulate"]
    assert completed("headrace plan --gan") == ["--gantt"]
    assert "heft" in completed("headrace plan -s he")
    assert completed("headrace run --keep r") == ["results"]


def test_defaults_come_from_a_file_and_give_way_to_the_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "headrace.toml").write_text(
        'scheduler = "minmin"\n[plan]\non = "lab.toml"\njson = true\nseed = 3\n'
    )
    run_command(["plan", "two.dot"])
    assert json.loads(capsys.readouterr().out)["scheduler"] == "minmin"
    run_command(["plan", "two.dot", "-s", "heft"])
    assert json.loads(capsys.readouterr().out)["scheduler"] == "heft"
    run_command(["plan", "--help"])
    assert "[default: lab.toml]" in capsys.readouterr().out
    (folder / "headrace.toml").unlink()
    (folder / "pyproject.toml").write_text(
        '[tool.headrace.plan]\non = "lab.toml"\nscheduler = "cpop"\njson = true\n'
    )
    run_command(["plan", "two.dot"])
    assert json.loads(capsys.readouterr().out)["scheduler"] == "cpop"


def test_help_shows_the_defaults_of_the_file_in_place_of_descriptions(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_command(["run", "--help"])
    assert "[default: (one per core)]" in capsys.readouterr().out
    (folder / "headrace.toml").write_text("[run]\nworkers = 3\n")
    run_command(["run", "--help"])
    shown = capsys.readouterr().out
    assert "Number of local workers.  [default: 3]" in shown
    assert "(one per core)" not in shown


def test_another_file_can_be_named_or_none(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "headrace.toml").write_text("nonsense = 1\n")
    (folder / "mine.toml").write_text('[plan]\non = "lab.toml"\njson = true\n')
    monkeypatch.setenv("HEADRACE_CONFIG", "mine.toml")
    run_command(["plan", "two.dot", "-s", "heft"])
    assert json.loads(capsys.readouterr().out)["platform"] == "lab"
    monkeypatch.setenv("HEADRACE_CONFIG", "")
    run_command(["plan", "two.dot", "-s", "heft", "--json"])
    assert json.loads(capsys.readouterr().out)["platform"] == "local"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[plann]\non = 'x'\n", "plan"),
        ("[plan]\nganttt = 'x'\n", "gantt"),
        ("gantt = 'x.svg'\n", "not a setting of all commands"),
        ("[plan]\njson = 'yes'\n", "true or false"),
        ("[plan]\nseed = [1]\n", "seed"),
        ("[plan]\nseed = 'x'\n", r"^headrace.toml: \[plan\]: seed is 'x' \(try: a whole number"),
        ("seed = 'x'\n", "^headrace.toml: seed is 'x'"),
        ("[run]\nallow-commands = true\n", "cannot be set in a file"),
        ("scheduler = 'evil.py:Own'\n", "would execute"),
        ("[plan]\nscheduler = 'evil.py:Own'\n", "would execute"),
        ("[compare]\nschedulers = 'heft,evil.py:Own'\non = 'lab.toml'\n", "would execute"),
        ("[plan\n", "line"),
    ],
)
def test_wrong_settings_are_errors_that_name_the_place(folder: Path, text: str, said: str) -> None:
    (folder / "headrace.toml").write_text(text)
    command = next((name for name in ("run", "compare") if f"[{name}]" in text), "plan")
    with pytest.raises(HeadraceError, match=said) as caught:
        run_command([command, "two.dot"])
    assert "headrace.toml" in str(caught.value)
    assert isinstance(caught.value, BadFile)


def test_files_that_are_no_settings(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool]\nheadrace = 5\n")
    with pytest.raises(BadFile, match="not a table"):
        run_command(["plan", "two.dot"])
    (folder / "headrace.toml").mkdir()
    with pytest.raises(BadFile, match="directory"):
        run_command(["plan", "two.dot"])
    (folder / "headrace.toml").rmdir()
    (folder / "pyproject.toml").write_text("keywords = [headrace\n")  # broken, and about something else
    assert run_command(["schedulers"]) == 0


def test_levels_and_sections_in_any_case(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "headrace.toml").write_text('quiet = true\n[PLAN]\non = "lab.toml"\nscheduler = "cpop"\n')
    run_command(["plan", "two.dot", "-v"])
    shown = capsys.readouterr()
    assert "cpop" in shown.out
    assert "planning" in shown.err
    with pytest.raises(HeadraceError, match="exclude each other"):
        run_command(["plan", "two.dot", "-v", "-q"])


@pytest.mark.parametrize("args", [("plan", "--seed", "-5"), ("compare", "--seed", "-1")])
def test_seeds_are_not_negative(folder: Path, args: tuple[str, ...]) -> None:
    with pytest.raises(Exception, match="--seed"):
        run_command([args[0], "two.dot", "--on", "lab.toml", *args[1:]])


def test_at_least_one_scheduler_is_compared(folder: Path) -> None:
    with pytest.raises(HeadraceError, match="at least one"):
        run_command(["compare", "two.dot", "--on", "lab.toml", "--schedulers", ","])


def test_settings_of_other_commands_do_not_matter() -> None:
    assert defaults_from({"run": {"workers": 3}}, "f", "plan", {}, ["plan", "run"]) == {}
