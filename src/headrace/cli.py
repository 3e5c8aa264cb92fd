"""The command `headrace`: a list of commands, each in its own file of `commands/`, loaded when it is called."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from headrace import __version__
from headrace.commands import console
from headrace.commands.config_file import defaults_from, find_config, named_place
from headrace.commands.dataclass_options import expand_dataclasses
from headrace.commands.general_options import (
    GroupedCommand,
    QuietOption,
    VerboseOption,
    with_general_options,
)
from headrace.model.errors import HeadraceError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
INTERRUPTED = 130
"""The exit code after Ctrl-C."""

COMMANDS = {
    "schedulers": "List the available schedulers and their sources.",
    "plan": "Plan where and when each task of a program runs.",
    "simulate": "Run a program in virtual time, on a grid that may change.",
    "check": "Check programs, platforms, plans, pipelines and rules.",
    "compare": "Compare schedulers over programs and platforms.",
    "convert": "Convert files between formats; export plans.",
    "demo": "Run a real program with and without a plan, and compare.",
    "warmup": "Compile everything once, so that later commands start fast.",
    "run": "Run a program on local workers or a Dask cluster.",
    "resume": "Continue a run that was killed, cancelled or failed.",
    "cancel": "Cancel a run that another process is executing.",
    "runs": "List recorded runs, or show one of them.",
    "ui": "Open the web page: draw, plan, run, simulate, see past runs.",
    "report": "Write a plan or a run as one interactive HTML file.",
    "logs": "Show what a task of a run printed.",
    "certificates": "Create TLS certificates for your own cluster.",
    "calibrate": "Fit a platform file to a recorded run.",
    "trial": "Measure the filters of a pipeline in a trial run.",
    "deploy": "Choose copies, hosts and flows for a pipeline's filters.",
    "stream": "Run a pipeline with buffers routed as planned.",
    "rules": "Print the default rules, or the attributes rules can use.",
    "sweep": "Run an experiment, each distinct task once, or quote it.",
    "results": "Show, select, export or draw the results of experiments.",
    "why": "Explain why a task ran, was reused, or must run again.",
    "forget": "Delete an experiment or run, and data kept only for it.",
    "keep": "Limit the age or size of what is kept for reuse.",
    "campaign": "Simulate all combinations of a campaign file.",
    "reproduce": "Repeat an experiment from the literature.",
}
"""Each command and its help. A command is the function of its name in `headrace.commands.<name>`."""


NAME = "headrace"
COMPLETING = f"_{NAME.upper()}_COMPLETE"
"""The variable that a shell sets when it asks what could come next."""


def assemble(*loaded: str) -> typer.Typer:
    """The application. Only the commands named are loaded; the others appear in the list and in suggestions."""
    app = typer.Typer(
        name=NAME,
        help="Plan, simulate and run dataflow programs on heterogeneous machines.",
        epilog="Defaults of options are read from headrace.toml or [tool.headrace] of pyproject.toml.",
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_root)
    for name, line in COMMANDS.items():
        chosen = load_command(name) if name in loaded else _not_loaded
        app.command(name, help=line, cls=GroupedCommand)(chosen)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{NAME} {__version__}")
        raise typer.Exit()


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    console.set_level(quiet=quiet, verbose=verbose)


def load_command(name: str) -> Callable[..., None]:
    """The function of a command, with a parameter for each of its options."""
    function = getattr(import_module(f"headrace.commands.{name}"), name)
    return with_general_options(expand_dataclasses(function))


def _not_loaded() -> None:
    raise AssertionError("this command was not loaded")


def run_command(args: Sequence[str]) -> int:
    """Run a command in this process; returns its exit code and raises its errors."""
    words, chosen = _chosen(args)
    command: Any = typer.main.get_command(assemble(*chosen))
    console.set_level()
    named = COMPLETING not in os.environ and bool(chosen) and chosen[0] in COMMANDS
    where, settings = find_config() if named else ("", {})
    if not settings:
        return command.main(words, prog_name=NAME, standalone_mode=False) or 0
    name, options = chosen[0], _options(command, chosen[0])
    defaults = {name: defaults_from(settings, where, name, options, COMMANDS)}
    try:
        return command.main(words, prog_name=NAME, standalone_mode=False, default_map=defaults) or 0
    except HeadraceError as error:
        found = named_place(error, words, settings, where, name, options)
        if found is error:
            raise
        raise found from None


def _chosen(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of the command line, and the commands to load; names of commands may be in capitals.

    >>> _chosen(["-q", "Plan", "a.json"]), _chosen([])
    ((['-q', 'plan', 'a.json'], ['plan']), (['--help'], []))
    """
    if COMPLETING in os.environ:
        typed = f"{os.environ.get('COMP_WORDS', '')} {os.environ.get('_TYPER_COMPLETE_ARGS', '')}".split()
        return list(args), [word for word in typed if word in COMMANDS]
    words = list(args) or ["--help"]
    for place, word in enumerate(words):
        if not word.startswith("-"):
            words[place] = word.lower() if word.lower() in COMMANDS else word
            return words, [words[place]]
    return words, []


def _options(app: Any, name: str) -> dict[str, Any]:
    """The options of a command by their long names, without dashes."""
    return {
        text.removeprefix("--"): option
        for option in app.commands[name].params
        if option.param_type_name == "option"
        for text in option.opts
        if text.startswith("--")
    }


def main() -> None:
    """Run the command; every error of ours is one line on stderr and an exit code."""
    try:
        code = run_command(sys.argv[1:])
        if code == INTERRUPTED:  # how typer reports Ctrl-C
            raise KeyboardInterrupt
        sys.stdout.flush()
        sys.exit(code)
    except HeadraceError as error:
        _print_error(str(error))
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        _print_error(f"stdout: cannot be written: {error.strerror} (try: free some space)")
        sys.stderr.flush()
        os._exit(2)  # at its end, the interpreter would try again to write the rest
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        _print_error(usage_message(error))
        sys.exit(2)


def usage_message(error: Any) -> str:
    """What is wrong with the command line, after the command that it is about."""
    text = str(error.format_message()).strip().removesuffix(".")
    context = getattr(error, "ctx", None)
    path = NAME if context is None else context.command_path
    return f"{path}: {text[:1].lower()}{text[1:]} (try: {path} --help)"


def _print_error(text: str) -> None:
    if console.is_verbose():
        import traceback

        typer.echo(traceback.format_exc(), err=True, nl=False)
    typer.echo(f"error: {text}", err=True)


if __name__ == "__main__":
    main()
