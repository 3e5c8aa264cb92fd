"""`headrace rules`: the default rules, and the attributes that rules can speak of."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from headrace.commands.console import print_json, print_table
from headrace.commands.dataclass_options import option
from headrace.commands.options import JsonOption
from headrace.model.errors import UsageError


@dataclass(frozen=True)
class Shown:
    """What to print."""

    default: bool = option(False, "--default", "Print the default rules, ready to edit.")
    attributes: bool = option(False, "--attributes", "List the relations and their attributes.")


def rules(shown: Shown, as_json: JsonOption = False) -> None:
    """Print the default rules, or the attributes of the relations that rules speak of."""
    if shown.default == shown.attributes:
        raise UsageError("give either --default or --attributes", hint="headrace rules --default")
    if shown.default:
        _print_default(as_json)
    else:
        _print_attributes(as_json)


def _print_default(as_json: bool) -> None:
    from importlib.resources import files

    text = files("headrace.rules").joinpath("default.rules").read_text(encoding="utf-8")
    if as_json:
        print_json({"rules": text})
    else:
        sys.stdout.write(text)


def _print_attributes(as_json: bool) -> None:
    from headrace.rules.attributes import LABEL, RELATIONS

    rows: list[dict[str, Any]] = [
        {
            "relation": relation,
            "attribute": a.name,
            "type": a.type.value,
            "unit": a.unit,
            "scheduled": a.scheduled,
            "meaning": a.meaning,
        }
        for relation, attributes in RELATIONS.items()
        for a in attributes.values()
    ]
    label = (
        "the user's label NAME of the task: text, or a number where it is compared with one; UNKNOWN: none"
    )
    rows.append(
        {
            "relation": "task",
            "attribute": f"{LABEL}NAME",
            "type": "text",
            "unit": "",
            "scheduled": False,
            "meaning": label,
        }
    )
    if as_json:
        print_json({"attributes": rows})
        return
    headers = ["relation", "attribute", "type", "unit", "known", "meaning"]
    known = {True: "schedule", False: "before"}
    print_table(headers, [[known[v] if k == "scheduled" else str(v) for k, v in r.items()] for r in rows])
