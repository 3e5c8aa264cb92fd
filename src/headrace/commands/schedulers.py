"""`headrace schedulers`: the registry as a table."""

from __future__ import annotations

from headrace.commands.console import print_json, print_table
from headrace.commands.options import JsonOption


def schedulers(as_json: JsonOption = False) -> None:
    """List the schedulers: what each does, for which programs, and where it comes from."""
    from headrace.planners.registry import entries

    rows = [
        {
            "name": e.name,
            "programs": e.programs,
            "online": "decides" if e.module.startswith("headrace.online.") else "plans",
            "what": e.line,
            "source": e.source,
        }
        for e in entries()
    ]
    if as_json:
        print_json({"schedulers": rows})
    else:
        headers = ["scheduler", "for", "in a run", "what it does", "source"]
        print_table(headers, [list(r.values()) for r in rows])
