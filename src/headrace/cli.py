"""The command `headrace`: a list of commands, each in its own file of `commands/`, loaded when it is called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

import typer

from headrace.commands.dataclass_options import expand_dataclasses
from headrace.model.errors import HeadraceError

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

COMMANDS = {
    "schedulers": "List the available schedulers and their sources.",
    "plan": "Plan where and when each task of a program runs.",
    "simulate": "Run a program in virtual time, on a grid that may change.",
    "check": "Check programs, platforms, plans, pipelines, deployments, rules.",
    "compare": "Compare schedulers over programs and platforms.",
    "convert": "Convert files between formats; export plans.",
    "demo": "Run a real program with and without a plan, and compare.",
    "warmup": "Compile everything once, so that later commands start fast.",
    "run": "Run a program on local workers or a Dask cluster.",
    "resume": "Go on with a run that was killed, cancelled or failed.",
    "cancel": "End a run that another process carries out.",
    "runs": "List recorded runs, or show one of them.",
    "ui": "Open the page: plan, write rules, look back at runs.",
    "report": "Write a plan or a run as one interactive HTML file.",
    "logs": "Show what a task of a run printed.",
    "certificates": "Create TLS certificates for a cluster of your own.",
    "calibrate": "Fit a platform file to a recorded run.",
    "trial": "Measure the filters of a pipeline in a trial run.",
    "deploy": "Choose copies, hosts and flows for a pipeline's filters.",
    "stream": "Run a pipeline with buffers routed as planned.",
    "rules": "Print the default rules, or what rules can speak of.",
    "sweep": "Run an experiment, each distinct task once, or quote it.",
    "results": "Show, select, export or draw the results of experiments.",
    "why": "Say why a task ran, was reused, or must run again.",
    "forget": "Delete an experiment or run and what only it has kept.",
    "keep": "Limit the age or size of what is kept for reuse.",
    "campaign": "Simulate all combinations of a campaign file.",
    "reproduce": "Repeat an experiment from the literature.",
}
"""Each command and its help. A command is the function of its name in `headrace.commands.<name>`."""


def assemble(*loaded: str) -> typer.Typer:
    """The application. Only the commands named are loaded; the others appear in the list and in suggestions."""
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


def run_command(args: Sequence[str]) -> int:
    """Run a command in this process; returns its exit code and raises its errors."""
    chosen = [word for word in args if not word.startswith("-")][:1]
    return assemble(*chosen)(list(args), standalone_mode=False) or 0


def main() -> None:
    """Run the command; every error of ours is one line on stderr and an exit code."""
    try:
        code = run_command(sys.argv[1:])
        if code == INTERRUPTED:  # how typer reports Ctrl-C
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
