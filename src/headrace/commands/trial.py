"""`headrace trial`: run each filter of a pipeline alone, and write down what planners need to know of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast, get_args

from headrace.formats.python_program import load_from_file
from headrace.model.errors import BadProgram, UsageError
from headrace.model.units import quantity, show_size, show_time
from headrace.runtime.filters import App
from headrace.runtime.trial import Clock, Trial, trial


def run_trial(
    spec: str, *, repeats: int, clock: str, spool: str, output: Path | None, tell: Callable[[str], None]
) -> Trial:
    """Load the application, measure it, and write the pipeline file if one is wanted."""
    from headrace.formats.lpsched_ini import write_pipeline

    if clock not in get_args(Clock):
        raise UsageError(f"--clock {clock}", hint=f"one of {', '.join(get_args(Clock))}")
    app = load_app(spec)
    made = trial(
        app,
        repeats=repeats,
        clock=cast(Clock, clock),
        spool=int(quantity(spool, "size", "--spool")),
        tell=tell,
    )
    if output is not None:
        write_pipeline(made.pipeline(), output)
    return made


def load_app(spec: str) -> App:
    """The application of `file.py:name`, or the function that makes it; the name defaults to `app`.

    This executes the file: use it on your own programs.
    """
    path, _, name = spec.partition(":")
    if not path.endswith(".py"):
        raise UsageError(
            f"{spec!r} is no Python file", where="trial", hint="give file.py:name, such as pipe.py:app"
        )
    name = name or "app"
    found = load_from_file(f"{path}:{name}")
    app = found() if callable(found) and not isinstance(found, App) else found
    if not isinstance(app, App):
        raise BadProgram(
            f"{name!r} is a {type(app).__name__}, not an App",
            where=path,
            hint="name a headrace.runtime.filters.App",
        )
    return app


def table(made: Trial) -> tuple[list[str], list[list[str]]]:
    """A row for each filter."""
    headers = ["filter", "time", "CPU", "in", "out", "buffers out", "host power"]
    return headers, [
        [
            f.name,
            show_time(f.wall),
            show_time(f.cpu),
            show_size(f.bytes_in),
            show_size(f.bytes_out),
            f"{f.buffers_out:,}",
            f"{f.power:.3f}",
        ]
        for f in made.filters
    ]


def as_json(made: Trial) -> dict[str, Any]:
    """The same for machines: seconds and bytes."""
    return {
        "app": made.app.name,
        "clock": made.clock,
        "buffer": made.app.buffer,
        "units": len(made.app.units),
        "filters": [
            {
                "name": f.name,
                "seconds": f.seconds(made.clock),
                "wall": f.wall,
                "cpu": f.cpu,
                "power": f.power,
                "bytes_in": f.bytes_in,
                "buffers_in": f.buffers_in,
                "bytes_out": f.bytes_out,
                "buffers_out": f.buffers_out,
                "sent": {stream: size for stream, size in f.sent.items() if stream},
            }
            for f in made.filters
        ],
        "notes": made.notes,
    }
