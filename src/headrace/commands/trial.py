"""`headrace trial`: run each filter of a pipeline alone and measure it for the planners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.commands.console import print_json, print_table, progress, require_outputs, results_beside
from headrace.commands.dataclass_options import option
from headrace.commands.options import JsonOption
from headrace.given import as_app
from headrace.model.errors import UsageError
from headrace.model.pipeline import READER_KIND
from headrace.model.units import quantity, show_size, show_time
from headrace.runtime.trial import Clock, Trial
from headrace.runtime.trial import trial as measure

if TYPE_CHECKING:
    from headrace.runtime.trial_cluster import ClusterTrial


@dataclass(frozen=True)
class TrialOptions:
    """How to measure, and the pipeline file to write."""

    repeats: int = option(1, "--repeats", "Number of times to run each filter; the fastest counts.", min=1)
    clock: Clock = option("wall", "--clock", "Clock to use; cpu if the machine has other work.")
    spool: str = option("4 GB", "--spool", "Limit for the data that one stream carries.", metavar="SIZE")
    output: Path | None = option(
        None, "--output", "Save the pipeline that `deploy` reads (INI).", short="-o", metavar="FILE"
    )
    on: str | None = option(
        None,
        "--on",
        "Measure on one host of each class of this cluster: tls://host:port, or tcp://127.0.0.1:port.",
        metavar="URL",
        default_text="this machine",
    )
    platform_output: Path | None = option(
        None,
        "--platform-output",
        "With --on, save the platform with the power of each host for every filter (TOML).",
        metavar="FILE",
    )
    tls_ca: Path | None = option(
        None, "--tls-ca", "Certificate authority of a tls:// cluster.", metavar="FILE"
    )
    tls_cert: Path | None = option(None, "--tls-cert", "Client certificate.", metavar="FILE")
    tls_key: Path | None = option(None, "--tls-key", "Client key.", metavar="FILE")


def trial(
    app_spec: Annotated[
        str,
        typer.Argument(metavar="APP", help="A pipeline application: file.py:name.", show_default=False),
    ],
    options: TrialOptions,
    as_json: JsonOption = False,
) -> None:
    """Measure the filters and print a row for each."""
    require_outputs(options.output, options.platform_output, inputs=(app_spec,))
    if options.on is not None:
        _trial_on_cluster(app_spec, options, as_json=as_json)
        return
    if options.platform_output is not None:
        raise UsageError(
            "a platform is measured with --on only", where="--platform-output", hint="give --on URL"
        )
    with progress(f"measuring {app_spec}") as say:
        made = run_trial(app_spec, options, say)
    with results_beside(options.output):
        if as_json:
            print_json(to_json(made))
            return
        print_table(*table(made))
        for note in made.notes:
            typer.echo(f"note: {note}")
        if options.output is not None:
            typer.echo(f"pipeline: {options.output}")


def run_trial(spec: str, options: TrialOptions, tell: Callable[[str], None]) -> Trial:
    """Load the application, measure it, and write the pipeline file if requested."""
    from headrace.formats.pipeline_ini import write_pipeline

    app = as_app(spec)
    made = measure(
        app,
        repeats=options.repeats,
        clock=options.clock,
        spool=int(quantity(options.spool, "size", "--spool")),
        tell=tell,
    )
    if options.output is not None:
        write_pipeline(made.pipeline(), options.output)
    return made


def _trial_on_cluster(spec: str, options: TrialOptions, *, as_json: bool) -> None:
    """Measure on one host of each class, write the files, and print a row for each class and filter."""
    with progress(f"measuring {spec} on {options.on}") as say:
        made = run_cluster_trial(spec, options, say)
    with results_beside(options.output, options.platform_output):
        if as_json:
            print_json(cluster_json(made))
            return
        print_table(*cluster_table(made))
        for found in made.classes:
            for note in found.trial.notes:
                typer.echo(f"note: {found.hosts[0]}: {note}")
        for what, file in (("pipeline", options.output), ("platform", options.platform_output)):
            if file is not None:
                typer.echo(f"{what}: {file}")


def run_cluster_trial(spec: str, options: TrialOptions, tell: Callable[[str], None]) -> ClusterTrial:
    """Connect, measure, and write the files that were requested."""
    from headrace.formats.pipeline_ini import write_pipeline
    from headrace.formats.platform_toml import write_platform
    from headrace.runtime.cluster import connect
    from headrace.runtime.measured import probe_platform
    from headrace.runtime.trial_cluster import trial_on

    app = as_app(spec)
    assert options.on is not None
    spool = int(quantity(options.spool, "size", "--spool"))
    with connect(options.on, ca=options.tls_ca, cert=options.tls_cert, key=options.tls_key) as cluster:
        made = trial_on(cluster, app, repeats=options.repeats, clock=options.clock, spool=spool, tell=tell)
        if options.platform_output is not None:
            tell("links")
            measured = probe_platform(cluster.client, say=tell)
            write_platform(made.platform(measured), options.platform_output)
    if options.output is not None:
        write_pipeline(made.pipeline(), options.output)
    return made


def cluster_table(made: ClusterTrial) -> tuple[list[str], list[list[str]]]:
    """A row for each class of hosts and each filter."""
    headers = ["class", "hosts", "filter", "time", "CPU", "out", "power"]
    reader = made.pipeline().reader.name
    rows = []
    for number, found in enumerate(made.classes):
        powers = made.powers(number)
        for i, f in enumerate(found.trial.filters):
            power = powers[READER_KIND if f.name == reader else f.name]
            first = [found.text, str(len(found.hosts))] if i == 0 else ["", ""]
            measured = [show_time(f.wall), show_time(f.cpu), show_size(f.bytes_out)]
            rows.append([*first, f.name, *measured, f"{power:.3f}"])
    return headers, rows


def cluster_json(made: ClusterTrial) -> dict[str, Any]:
    """The measurements on each class as JSON, in seconds and bytes."""
    return {
        "app": made.app.name,
        "classes": [
            {
                "class": found.text,
                "hosts": list(found.hosts),
                "powers": made.powers(number),
                "filters": to_json(found.trial)["filters"],
                "notes": found.trial.notes,
            }
            for number, found in enumerate(made.classes)
        ],
    }


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


def to_json(made: Trial) -> dict[str, Any]:
    """The measurements as JSON, in seconds and bytes."""
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
