"""The command `headrace`: a list of commands, each in its own file of `commands/`, loaded when it is called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

import typer

from headrace.commands.dataclass_options import expand_dataclasses
from headrace.model.errors import HeadraceError

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

COMMANDS = {
    "schedulers": "List the schedulers: what each does, for which programs, and where it comes from.",
    "plan": "Plan a program on a platform: where and when each task runs, and how far that is from optimal.",
    "simulate": "Run a program in virtual time, under a plan or under a scheduler on a grid that changes.",
    "check": "Check program, platform and plan files; a plan is checked against its program and platform.",
    "compare": "Compare schedulers over programs and platforms: makespan / bound and planning time.",
    "convert": "Convert a program, platform or behaviour between formats, or a plan to a Chrome trace or SVG.",
    "demo": "Run one real program twice on four unequal workers, without and with a plan, and compare.",
    "warmup": "Compile everything ahead, once for this machine; without it the first commands take longer.",
    "run": "Run a program on local workers or a Dask cluster and record what happens.",
    "runs": "List recorded runs, or show what happened in one.",
    "trial": "Measure a pipeline: run each filter alone and record its time and data volume.",
    "deploy": "Deploy a pipeline: how many copies of each filter, on which hosts, with which flows.",
    "campaign": "Simulate every combination of applications, grids and schedulers; resumes where it stopped.",
    "reproduce": "Repeat an experiment from the literature: table, figure, and the paper's claims checked.",
}
"""Each command and its help: the function of that name in `headrace.commands.<name>`."""


def assemble(*loaded: str) -> typer.Typer:
    """The application. Only the commands named are loaded; the others are there for the list and for suggestions."""
    app = typer.Typer(
        name="headrace",
        help="Plan, simulate and run dataflow programs on heterogeneous machines.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for name, line in COMMANDS.items():
        app.command(name, help=line)(load_command(name) if name in loaded else _not_loaded)
    return app


def load_command(name: str) -> Callable[..., None]:
    """The function of a command, with a parameter for each of its options."""
    return expand_dataclasses(getattr(import_module(f"headrace.commands.{name}"), name))


def _not_loaded() -> None:
    raise AssertionError("this command was not loaded")


def main() -> None:
    """Run the command; every error of ours is one line on stderr and an exit code."""
    try:
        chosen = [word for word in sys.argv[1:] if not word.startswith("-")][:1]
        code = assemble(*chosen)(standalone_mode=False) or 0
        if code == INTERRUPTED:  # how the library that reads the command line tells of Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code)
    except HeadraceError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        usage = getattr(error, "format_message", None)
        if usage is None:
            raise
        typer.echo(f"error: {usage()} (try: headrace --help)", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
