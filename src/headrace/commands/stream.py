"""`headrace stream`: run a pipeline application with its copies on real workers."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.commands.console import file_rows, print_json, print_table, require_outputs, results_beside
from headrace.commands.dataclass_options import option
from headrace.commands.options import JsonOption, PlotOption
from headrace.commands.run import parse_speeds
from headrace.commands.stream_live import live_lines, print_line
from headrace.commands.stream_table import live_table
from headrace.given import as_app
from headrace.model.errors import UsageError
from headrace.model.pipeline import Pipeline
from headrace.model.units import plural, show_size, show_time
from headrace.runtime.streams.options import StreamOptions
from headrace.runtime.streams.routing import Routing
from headrace.runtime.streams.summary import StreamSummary
from headrace.streaming import Emulated, Streamed
from headrace.streaming import stream as carry_out


@dataclass(frozen=True)
class FlowOptions:
    """How buffers flow."""

    routing: Routing = option(
        "planned", "--routing", "How producers choose among copies; planned keeps the planned proportions."
    )
    work_conserving: bool = option(
        False,
        "--work-conserving",
        "With planned routing: skip a copy whose buffers are full if another has room.",
    )
    credits: int | None = option(
        None,
        "--credits",
        "Buffers in flight to each copy, per sender.",
        min=1,
        default_text="4, or 4 MB of small buffers",
    )
    duration: float | None = option(
        None,
        "--duration",
        "Repeat the units of work for this long.",
        metavar="SECONDS",
        default_text="each unit once",
    )
    restarts: int = option(0, "--restart", "How often to replay unfinished units after a fault.", min=0)
    adapt: bool = option(
        False,
        "--adapt",
        "Change proportions and copies while it runs, when hosts are faster or slower than planned.",
    )
    stall: float = option(
        60.0,
        "--stall",
        "A host, process or link is lost after this long without a sign of life.",
        metavar="SECONDS",
    )

    @property
    def stream_options(self) -> StreamOptions:
        return StreamOptions(**asdict(self))


@dataclass(frozen=True)
class PlaceOptions:
    """Where to run, and what to emulate there."""

    on: str = option(
        "local",
        "--on",
        "Where to run: `local`, tls://host:port, or tcp://127.0.0.1:port on this machine.",
        metavar="WHERE",
    )
    deployment: Path | None = option(
        None,
        "--deployment",
        "A deployment file, written by `headrace deploy -o`.",
        metavar="FILE",
        default_text="trial run, then a planned deployment",
    )
    workers: int | None = option(
        None, "--workers", "Number of local workers to plan for.", min=1, default_text="one per core"
    )
    speeds: str | None = option(
        None,
        "--speeds",
        "Emulate hosts of these speeds, such as 4,2,1,1; the fastest is this machine.",
        metavar="LIST",
        default_text="no emulation",
    )
    platform: Path | None = option(
        None, "--platform", "Emulate the powers, ports and links of this platform.", metavar="FILE"
    )
    pipeline: Path | None = option(
        None, "--pipeline", "The trial run that the deployment was planned for.", metavar="FILE"
    )
    slower: float = option(1.0, "--slower", "With --platform: divide powers and bandwidths by this.")
    slowdowns: str | None = option(
        None,
        "--slowdown",
        "Emulate hosts that become slower, such as w1-4x=2@30: half the speed after 30 s; comma-separated.",
        metavar="LIST",
        default_text="no emulation",
    )
    tls_ca: Path | None = option(
        None, "--tls-ca", "Certificate authority of a tls:// cluster.", metavar="FILE"
    )
    tls_cert: Path | None = option(None, "--tls-cert", "Client certificate.", metavar="FILE")
    tls_key: Path | None = option(None, "--tls-key", "Client key.", metavar="FILE")

    @property
    def tls(self) -> dict[str, str]:
        """The given files, by the parameter names of `connect`."""
        files = {"ca": self.tls_ca, "cert": self.tls_cert, "key": self.tls_key}
        return {name: str(path) for name, path in files.items() if path is not None}

    @property
    def emulated(self) -> Emulated:
        from headrace.formats.loading import load_platform

        platform = None if self.platform is None else load_platform(self.platform)
        return Emulated(parse_speeds(self.speeds), platform, self.slower, parse_slowdowns(self.slowdowns))

    @property
    def trial(self) -> Pipeline | None:
        from headrace.formats.loading import load_pipeline

        return None if self.pipeline is None else load_pipeline(self.pipeline)


def parse_slowdowns(text: str | None) -> dict[str, tuple[float, float]]:
    """
    >>> parse_slowdowns("w1-4x=2@30,w2=1.5@10")
    {'w1-4x': (30.0, 2.0), 'w2': (10.0, 1.5)}
    """
    found: dict[str, tuple[float, float]] = {}
    for part in [] if text is None else text.split(","):
        host, _, rest = part.strip().rpartition("=")
        factor, _, after = rest.partition("@")
        try:
            found[host] = (float(after), float(factor))
        except ValueError:
            raise UsageError(f"--slowdown is {text!r}", hint="give HOST=FACTOR@SECONDS") from None
    return found


def stream(
    app_spec: Annotated[
        str,
        typer.Argument(
            metavar="APP", help="A pipeline application: file.py:name, or a drawing.", show_default=False
        ),
    ],
    place: PlaceOptions,
    flow: FlowOptions,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for result files.")
    ] = Path(),
    plot: PlotOption = None,
    as_json: JsonOption = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Print rates as JSON every second, a line each; the last is the outcome."
        ),
    ] = False,
) -> None:
    """Run the application and print what was measured; the exit code is 1 if a filter failed."""
    require_outputs(drawn=(plot,), inputs=(app_spec, place.on, place.deployment))
    app = as_app(app_spec)
    with live_lines(app, place.slower) if live else live_table() as observe:
        done = carry_out(
            app,
            place.on,
            place.deployment,
            pipeline=place.trial,
            workers=place.workers,
            options=flow.stream_options,
            emulate=place.emulated,
            tls=place.tls,
            output=output,
            observe=observe,
            tell=lambda line: typer.echo(line, err=True),
        )
    if plot is not None:
        draw(done, plot)
    with results_beside(plot):
        if live:
            print_line(to_json(done))
        elif as_json:
            print_json(to_json(done))
        else:
            show(done, plot)
    if done.failure is not None:
        sys.stderr.write(f"error: {done.failure}\n")
        raise typer.Exit(done.failure.exit_code)


def show(done: Streamed, plot: Path | None) -> None:
    """A row for each copy, then the summary."""
    show_copies(done.summary)
    rows = summary_rows(done.summary)
    rows += [["result", str(path)] for path in done.files[:10]]
    if len(done.files) > 10:
        rows.append(["result", f"and {len(done.files) - 10} more"])
    print_table([], rows + file_rows([("picture", plot)]))


def show_copies(summary: StreamSummary) -> None:
    """What each copy did."""
    print_table(
        ["copy", "in", "out", "MB/s in", "busy", "waits: input", "credit", "network", "backlog"],
        [
            [
                use.name,
                f"{use.buffers_in:,} ({show_size(use.bytes_in)})",
                f"{use.buffers_out:,} ({show_size(use.bytes_out)})",
                f"{use.bytes_in / 1e6 / summary.copy_seconds:.4g}",
                *(f"{share:.0%}" for share in (use.busy, use.waits_input, use.waits_credit, use.waits_send)),
                str(use.most_backlog),
            ]
            for use in summary.copies
        ],
    )


def summary_rows(summary: StreamSummary) -> list[list[str]]:
    """The figures of the whole run; rates mean nothing if no unit was completed."""
    rows = _rate_rows(summary) if summary.units else []
    rows.append(["units", plural(summary.units, "unit") + " of work committed"])
    if summary.emulated:
        rows.append(["emulated", summary.emulated])
    if summary.adaptations:
        rows.append(["adapted", f"proportions changed {plural(summary.adaptations, 'time')}"])
    if summary.redeployments:
        times = plural(summary.redeployments, "time")
        rows.append(["redeployed", f"copies changed {times}; the table is for those since the last"])
    if summary.restarts:
        rows.append(["restarts", f"{summary.restarts}: {summary.faults[0].splitlines()[0]}"])
    return rows


def _rate_rows(summary: StreamSummary) -> list[list[str]]:
    rows = [["throughput", f"{summary.throughput:.4g} MB/s"]]
    if summary.of_planned is not None:
        rows.append(["planned", f"{summary.planned:.4g} MB/s; measured {summary.of_planned:.1%} of it"])
    seconds = show_time(summary.seconds)
    rows.append(["over all", f"{summary.overall:.4g} MB/s, with filling and draining, in {seconds}"])
    rows.append(["limited by", summary.limit])
    return rows


def to_json(done: Streamed) -> dict[str, Any]:
    """Rates in MB/s, times in seconds."""
    summary = done.summary
    return {
        "throughput": done.throughput,
        "planned": summary.planned,
        "overall": summary.overall,
        "seconds": summary.seconds,
        "units": summary.units,
        "limit": summary.limit,
        "emulated": summary.emulated,
        "restarts": summary.restarts,
        "adaptations": summary.adaptations,
        "redeployments": summary.redeployments,
        "faults": list(summary.faults),
        "failure": None if done.failure is None else str(done.failure),
        "copies": [use._asdict() for use in summary.copies],
        "flows": [flow._asdict() for flow in summary.flows],
        "results": [str(path) for path in done.files],
    }


def draw(done: Streamed, path: Path) -> None:
    """Planned flows against measured ones."""
    from headrace.formats.files import write_file
    from headrace.report.flows import FlowBar, flows_svg

    bars = [
        FlowBar(f"{f.source_filter} on {f.source} -> {f.target_filter} on {f.target}", f.planned, f.measured)
        for f in done.summary.flows
    ]
    title = f"{done.plan.app_name}: planned and measured flows"
    write_file(path, flows_svg(title, bars).encode())
