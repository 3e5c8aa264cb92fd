"""The command reference, made from the command itself."""

from __future__ import annotations

import re
from typing import Any

import typer

from headrace.cli import COMMANDS, NAME, assemble

HERE = "<!-- commands -->"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put the reference where a page asks for it."""
    return markdown.replace(HERE, command_reference()) if HERE in markdown else markdown


def command_reference() -> str:
    """A section for each command: its summary, its usage, and tables of its arguments and options."""
    app: Any = typer.main.get_command(assemble(*COMMANDS))
    root = app.make_context(NAME, ["schedulers"], resilient_parsing=True)
    return "\n".join(_section(name, app.commands[name], root) for name in COMMANDS)


def _section(name: str, command: Any, root: Any) -> str:
    context = command.make_context(name, [], parent=root, resilient_parsing=True)
    usage = command.get_usage(context).removeprefix("Usage: ")
    lines = [f"## {name}", "", COMMANDS[name], "", "```text", re.sub(r"\s+", " ", usage), "```", ""]
    for group, records in command.grouped_options(context):
        lines += [f"| {group} | |", "| --- | --- |"]
        lines += [f"| `{_words(option)}` | {_escaped(text)} |" for option, text in records]
        lines.append("")
    return "\n".join(lines)


def _words(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _escaped(text: str) -> str:
    """As text of a cell: only code in backticks is formatted."""
    parts = _words(text).split("`")
    return "`".join(part if odd % 2 else re.sub(r"([|<*])", r"\\\1", part) for odd, part in enumerate(parts))
