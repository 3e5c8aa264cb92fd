"""The command `headrace`: thin, each command loads what it needs when it is called."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.model.errors import HeadraceError, UsageError

if TYPE_CHECKING:
    from headrace.commands.simulate import Simulated
    from headrace.commands.simulate_options import SimulateOptions
    from headrace.model.plan import Plan
    from headrace.model.platform import Platform
    from headrace.model.program import Program

app = typer.Typer(
    name="headrace",
    help="Plan, simulate and run dataflow programs on machines that are not all alike.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

ProgramArg = Annotated[
    str,
    typer.Argument(
        metavar="PROGRAM",
        help="WfFormat JSON (also .gz), a sweep (PST), or file.py:name.",
        show_default=False,
    ),
]
OnOption = Annotated[
    str,
    typer.Option("--on", metavar="PLATFORM", help="Platform TOML, a grid (PST), or `local`: this machine."),
]
SchedulerOption = Annotated[
    str, typer.Option("--scheduler", "-s", help="One of `headrace schedulers`, or your own: file.py:Class.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
GanttOption = Annotated[Path | None, typer.Option("--gantt", metavar="FILE", help="Draw the chart as SVG.")]
TraceOption = Annotated[
    Path | None, typer.Option("--trace", metavar="FILE", help="Write a Chrome trace (JSON).")
]


def main() -> None:
    """Run the command; every error of ours is one line on stderr and an exit code."""
    try:
        code = app(standalone_mode=False) or 0
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


@app.command()
def schedulers(as_json: JsonOption = False) -> None:
    """List the schedulers: what each does, for which programs, and where it comes from."""
    from headrace.planners.registry import entries

    rows = [
        {
            "name": e.name,
            "programs": e.programs,
            "online": "plans again" if e.online is None else "decides",
            "what": e.line,
            "source": e.source,
        }
        for e in entries()
    ]
    if as_json:
        _print_json({"schedulers": rows})
    else:
        _table(["scheduler", "for", "in a run", "what it does", "source"], [list(r.values()) for r in rows])


@app.command()
def plan(
    program: ProgramArg,
    on: OnOption = "local",
    scheduler: SchedulerOption = "auto",
    seconds: Annotated[
        float | None,
        typer.Option(
            "--time",
            metavar="SECONDS",
            help="How long `best` (else 10) or `coschedule` (else 20) may search.",
        ),
    ] = None,
    chunk: Annotated[
        int | None,
        typer.Option(metavar="JOBS", help="With `coschedule`: plan so many jobs at a time.", min=1),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of schedulers that draw.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Save the plan.")
    ] = None,
    gantt: GanttOption = None,
    trace: TraceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Plan a program on a platform: where and when each task runs, and how far that is from optimal."""
    from headrace.api import plan as make_plan
    from headrace.formats.plan_json import plan_to_dict, write_plan

    platform = _platform(on)
    source = _program(program)
    with _computing(f"planning {len(source.tasks):,} tasks on {len(platform.hosts)} hosts") as say:
        options: dict[str, Any] = {} if seconds is None else {"time": seconds}
        options |= {} if chunk is None else {"chunk": chunk}
        if scheduler in ("best", "coschedule"):
            options["tell"] = lambda passed, makespan, bound: say(
                f"{passed:.1f} s: makespan {makespan:.6g} s, bound {bound:.6g} s"
                + (f", gap {makespan / bound - 1:.2%}" if bound > 0 else "")
            )
        made = make_plan(source, platform, scheduler, seed=seed, **options)
    if output is not None:
        write_plan(made, output, made_from=(program, on))
    _draw(made, gantt, trace)
    if as_json:
        _print_json(plan_to_dict(made))
    else:
        _summary(made, [("plan", output), ("chart", gantt), ("trace", trace)])


@app.command()
def simulate(
    program: ProgramArg,
    on: OnOption = "local",
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            "-s",
            help="One of `headrace schedulers` (auto if not given), or your own: file.py:Class.",
        ),
    ] = None,
    plan_file: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="Carry this plan out; do not plan.")
    ] = None,
    error: Annotated[
        float, typer.Option(help="Run times differ from the estimates by up to this share, either way.")
    ] = 0.0,
    events: Annotated[
        str | None,
        typer.Option(help="When to plan: S1 (every interval), S2, S3 (as the run strays), or once."),
    ] = None,
    interval: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Between the first two plans.", min=0)
    ] = None,
    horizon: Annotated[
        str | None, typer.Option(help="How far past the next plan to give work: `tuned`, or in intervals.")
    ] = None,
    planning: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Virtual time a plan takes per 1,000 tasks times hosts; work goes on.",
            min=0,
        ),
    ] = None,
    subset: Annotated[
        int | None, typer.Option(metavar="TASKS", help="Plan for at most so many at once.", min=0)
    ] = None,
    reduce: Annotated[
        str | None, typer.Option(help="With --subset, which: shared-file (that share files) or random.")
    ] = None,
    replan: Annotated[
        str | None,
        typer.Option(help="Plan anew on joins, losses, both or neither; 10%: also every 10 % of the time."),
    ] = None,
    estimates: Annotated[
        str | None,
        typer.Option(
            help="What schedulers are told: user, history, perfect, bounded:0.3, sampled, forecast."
        ),
    ] = None,
    faults: Annotated[
        str | None,
        typer.Option(help="Such as kill=2@30%, slow=1*0.5@10%+20%, join=2@50%, cluster=a@40%, link=a@9+5."),
    ] = None,
    replicate: Annotated[
        int | None, typer.Option(metavar="N", help="Copy what every N-th level makes to idle hosts.", min=0)
    ] = None,
    links: Annotated[
        str | None, typer.Option(help="Queues of links: in-order, out-of-order or hybrid.")
    ] = None,
    ahead: Annotated[
        int | None, typer.Option(metavar="N", help="Send inputs for N queued tasks of each host.", min=1)
    ] = None,
    steal: Annotated[bool, typer.Option("--steal", help="Idle hosts take work inside their site.")] = False,
    duplicate: Annotated[
        bool, typer.Option("--duplicate", help="Idle hosts run copies of tasks that are overdue.")
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option("--time", metavar="SECONDS", help="How long `best` and `coschedule` search for a plan."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of what is drawn.")] = 0,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Repeat with so many seeds and report the makespans.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="With --runs: draw the makespans as SVG.")
    ] = None,
    gantt: GanttOption = None,
    trace: TraceOption = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what happened, a line an event.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a program in virtual time: carry a plan out, or let a scheduler decide on a grid that changes."""
    from headrace.commands.simulate import grid_of, is_online, simulate_program
    from headrace.commands.simulate_options import SimulateOptions, require_fitting
    from headrace.formats.files import require_target, write_file
    from headrace.formats.plan_json import plan_to_dict

    options = SimulateOptions(
        scheduler=scheduler,
        plan=plan_file,
        error=error,
        seed=seed,
        events=events,
        interval=interval,
        horizon=horizon,
        planning=planning,
        subset=subset,
        reduce=reduce,
        replan=replan,
        estimates=estimates,
        faults=faults,
        replicate=replicate,
        links=links,
        ahead=ahead,
        steal=steal,
        duplicate=duplicate,
        time=seconds,
    )
    if runs is not None and log is not None:
        raise UsageError("--log is of one run", hint="simulate with one of the seeds, without --runs")
    if runs is None and plot is not None:
        raise UsageError("--plot draws many runs", hint="add --runs 1000, or use --gantt")
    require_target(plot, gantt, trace, log)
    grid = grid_of(on)
    require_fitting(options, grid)
    source = _program(program)
    if runs is not None:
        _simulate_runs(source, grid, options, runs, {"plot": plot, "gantt": gantt, "trace": trace}, as_json)
        return
    if log is not None and not is_online(source, grid, options):
        raise UsageError(
            "a plan that is carried out has no log", where="--log", hint="add --events once, or see --json"
        )
    with _computing(f"simulating {len(source.tasks):,} tasks") as say:
        outcome = simulate_program(source, grid, options, say)
    if log is not None and outcome.run is not None:
        write_file(log, ("\n".join(outcome.run.log_lines()) + "\n").encode())
    _draw_simulated(outcome, gantt, trace)
    if as_json:
        _print_json(plan_to_dict(outcome.happened) | outcome.facts)
    else:
        files = (("chart", gantt), ("trace", trace), ("log", log))
        _table([], [*outcome.rows, *([name, str(path)] for name, path in files if path)])


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Programs, platforms and plans.")],
    as_json: JsonOption = False,
) -> None:
    """Check program, platform and plan files; a plan is judged with the program and platform next to it."""
    from headrace.commands.check import check_files

    findings = check_files([str(f) for f in files])
    broken = [f for f in findings if f["violations"]]
    if as_json:
        _print_json({"files": findings, "ok": not broken})
    else:
        for finding in findings:
            typer.echo(f"{finding['file']}: {finding['kind']}: {finding['summary']}")
            for violation in finding["violations"]:
                typer.echo(f"  {violation}")
    if broken:
        raise typer.Exit(2)


@app.command()
def compare(
    programs: Annotated[
        list[str], typer.Argument(metavar="PROGRAM...", help="WfFormat files, or file.py:name.")
    ],
    on: Annotated[
        list[str], typer.Option("--on", metavar="PLATFORM", help="Platform file; may be given again.")
    ],
    schedulers: Annotated[str, typer.Option(metavar="LIST", help="Names with commas.")] = "heft,auto",
    seconds: Annotated[
        float | None,
        typer.Option("--time", metavar="SECONDS", help="How long `best` may search; 10 if not given."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of schedulers that draw.")] = 0,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the ratios as SVG.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare schedulers over programs and platforms: makespan / bound and planning time."""
    from headrace.commands.compare import as_json as to_json
    from headrace.commands.compare import compare_files, table

    names = [name.strip() for name in schedulers.split(",") if name.strip()]
    with _computing("comparing") as say:
        rows = compare_files(programs, on, names, seconds, seed, say)
    if plot is not None:
        from headrace.report.ratios import write_ratios

        write_ratios(
            plot,
            [f"{row.program} on {row.platform}" for row in rows],
            names,
            [[_ratio(row.results[name]) for name in names] for row in rows],
        )
    if as_json:
        _print_json(to_json(rows, names))
    else:
        _table(*table(rows, names))


@app.command()
def convert(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="Program (also file.py:name), platform, behaviour or plan.")
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Its ending decides the format.")],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="wfformat, pst, dot, graphml, node-link, platform, trace, chrome-trace or svg, "
            "if the ending does not say.",
        ),
    ] = None,
    program: Annotated[
        str | None, typer.Option("--program", metavar="PROGRAM", help="The program of a plan file.")
    ] = None,
    on: Annotated[
        str | None, typer.Option("--on", metavar="PLATFORM", help="The platform of a plan file.")
    ] = None,
) -> None:
    """Convert a program, platform or behaviour between formats, or a plan to a Chrome trace or SVG."""
    from headrace.commands.convert import convert_file

    typer.echo(f"{target}: {convert_file(source, target, to, program, on)}")


@app.command()
def demo(
    page: Annotated[Path, typer.Option("--page", metavar="FILE", help="Where to write both charts.")] = Path(
        "demo.html"
    ),
    as_json: JsonOption = False,
) -> None:
    """Run one real program twice on four unequal workers, without and with a plan, and compare."""
    from headrace.commands.demo import demo_json, run_demo, write_demo_page
    from headrace.model.units import show_time

    outcome = run_demo(lambda line: typer.echo(f"- {line}", err=True))
    write_demo_page(outcome, page)
    if as_json:
        _print_json(demo_json(outcome))
    else:
        rows = [
            [row.placed_by, show_time(row.makespan), show_time(row.bound), f"{row.ratio:.2f}"]
            for row in outcome.rows()
        ]
        _table(["placed by", "makespan", "lower bound", "ratio"], rows)
        same = "the same" if outcome.same else "DIFFERENT"
        typer.echo(f"both runs gave {same} results; with the plan {outcome.speedup:.2f} times as fast")
        typer.echo(f"charts: {page}")
    if not outcome.same:
        raise typer.Exit(1)


@app.command()
def warmup(
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that compile; one for each core if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compile everything ahead, once for this machine; without it the first commands take longer."""
    from headrace.commands.warmup import warm_up

    done = warm_up(workers)
    if as_json:
        _print_json(done.json())
    else:
        if done.functions:
            rows = [[d.name, str(d.functions), f"{d.compile_seconds:.1f} s"] for d in done.workloads]
            _table(["part", "functions compiled", "compiling"], rows)
        typer.echo(done.summary())
    for failure in done.failed:
        typer.echo(f"error: {failure.name}: {failure.error}", err=True)
    if done.failed:
        raise typer.Exit(1)


@app.command()
def run(
    program: ProgramArg,
    on: Annotated[
        str,
        typer.Option("--on", metavar="WHERE", help="`local`, tls://host:port, or tcp:// on this machine."),
    ] = "local",
    scheduler: Annotated[
        str,
        typer.Option(
            "--scheduler", "-s", help="One of `headrace schedulers`, file.py:Class, or `dask`: no plan."
        ),
    ] = "auto",
    online: Annotated[
        bool, typer.Option("--online", help="Decide while it runs, as lheft and dheft do; no plan ahead.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(help="Local workers; one a core if not given.", min=1)
    ] = None,
    speeds: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Emulate local workers of these speeds, such as 4,2,1,1."),
    ] = None,
    emulate: Annotated[
        bool, typer.Option("--emulate", help="Tasks only take their time and make data.")
    ] = False,
    time_scale: Annotated[float, typer.Option(help="With --emulate: scale run times.")] = 1.0,
    size_scale: Annotated[
        float | None, typer.Option(help="With --emulate: scale sizes; as run times if not given.")
    ] = None,
    burn: Annotated[
        bool, typer.Option("--burn", help="With --emulate: use the CPU instead of sleeping.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where result files go.")
    ] = Path(),
    tls_ca: Annotated[Path | None, typer.Option(help="Certificate authority of a tls:// cluster.")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Our certificate.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Our key.")] = None,
    gantt: GanttOption = None,
    trace: TraceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a program for real on local workers or a Dask cluster; keep what happened in the record."""
    from headrace.commands.run import RunOptions, run_program

    options = RunOptions(
        on=on,
        scheduler=scheduler,
        online=online,
        workers=workers,
        speeds=speeds,
        emulate=emulate,
        time_scale=time_scale,
        size_scale=size_scale,
        burn=burn,
        output=output,
        tls={"ca": tls_ca, "cert": tls_cert, "key": tls_key},
        gantt=gantt,
        trace=trace,
    )
    code = run_program(_program(program), options, _print_json if as_json else None)
    if code:
        raise typer.Exit(code)


@app.command()
def runs(
    run_id: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Show the tasks of this run.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List recorded runs, or show what happened in one."""
    from headrace.commands.runs import run_rows, runs_rows

    headers, rows = runs_rows() if run_id is None else run_rows(run_id)
    if as_json:
        _print_json({"rows": [dict(zip(headers, row, strict=True)) for row in rows]})
    else:
        _table(headers, [[_shown(value) for value in row] for row in rows])


@app.command()
def trial(
    app_spec: Annotated[
        str,
        typer.Argument(metavar="APP", help="A pipeline application: file.py:name.", show_default=False),
    ],
    repeats: Annotated[int, typer.Option(min=1, help="Rounds of each filter; the quickest counts.")] = 1,
    clock: Annotated[str, typer.Option(help="wall, or cpu where the machine has other work.")] = "wall",
    spool: Annotated[str, typer.Option(metavar="SIZE", help="Room for what a stream carries.")] = "4 GB",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Save what `deploy` reads (INI).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Try a pipeline out: run each filter alone, for real, and measure its time, its volume and the host."""
    from headrace.commands.trial import as_json as to_json
    from headrace.commands.trial import run_trial, table

    with _working(f"trying {app_spec}") as say:
        made = run_trial(app_spec, repeats=repeats, clock=clock, spool=spool, output=output, tell=say)
    if as_json:
        _print_json(to_json(made))
        return
    _table(*table(made))
    for note in made.notes:
        typer.echo(f"note: {note}")
    if output is not None:
        typer.echo(f"pipeline: {output}")


@app.command()
def deploy(
    pipeline: Annotated[
        str, typer.Argument(metavar="PIPELINE", help="INI or TOML file of filters.", show_default=False)
    ],
    on: Annotated[
        str, typer.Option("--on", metavar="PLATFORM", help="INI or TOML file of machines, or `local`.")
    ],
    compare: Annotated[
        str, typer.Option("--compare", metavar="LIST", help="Side by side: trivial,total,lpsched.")
    ] = "",
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="HOSTS", help="Where the input is: a,b or a=0.7,b=0.3; again: or."),
    ] = None,
    sources: Annotated[
        Path | None, typer.Option("--sources", metavar="FILE", help="The options for reading the input.")
    ] = None,
    load: Annotated[
        str | None,
        typer.Option("--load", metavar="FROM", help="Forecast loads: a file, `forecast` (traces), `record`."),
    ] = None,
    seconds: Annotated[float, typer.Option("--time", metavar="SECONDS", help="How long to search.")] = 10.0,
    gap: Annotated[float, typer.Option(help="Stop at this proven distance from the best.")] = 1e-4,
    several_per_host: Annotated[
        bool, typer.Option("--several-per-host", help="Filters may share a host.")
    ] = False,
    host_cost: Annotated[float | None, typer.Option(help="W_X: MB/s that a host must add.")] = None,
    cross: Annotated[float | None, typer.Option(help="W_C: weight of flows between clusters.")] = None,
    spare: Annotated[float | None, typer.Option(help="W_F: share of power to have in reserve.")] = None,
    least: Annotated[float | None, typer.Option(help="W_MIN: least use of a host.")] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Let buffers flow in virtual time; also dealt out in turn.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Save the deployment (INI).")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw clusters, copies and flows as SVG.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Deploy a pipeline: how many copies of each filter, on which hosts, with which flows."""
    from headrace.commands.deploy import DeployOptions, deploy_file, show_deployments

    planners = tuple(name.strip() for name in compare.split(",") if name.strip())
    options = DeployOptions(
        on=on,
        planners=planners or ("lpsched",),
        sources_file=sources,
        sources=tuple(source or ()),
        load=load,
        time=seconds,
        gap=gap,
        several_per_host=several_per_host,
        host_cost=host_cost,
        cross=cross,
        spare=spare,
        least=least,
    )
    with _working(f"deploying {pipeline}") as say:
        made = deploy_file(pipeline, options, say)
        happened = None
        if simulate:
            from headrace.commands.deploy_simulated import simulate_deployments

            happened = simulate_deployments(made, say)
    show_deployments(
        made, output=output, plot=plot, as_json=_print_json if as_json else None, simulated=happened
    )


@app.command()
def campaign(
    file: Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="Campaign TOML: what to combine.")],
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that simulate; one a core if not given.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the makespans as SVG.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Simulate every combination of applications, grids and schedulers once; go on where it stopped."""
    from headrace.commands.campaign import as_json as to_json
    from headrace.commands.campaign import reasons, run_campaign_file, table
    from headrace.formats.files import require_target

    require_target(plot)
    with _computing(f"running {file}") as say:
        read, done = run_campaign_file(file, workers, plot, say)
    if as_json:
        _print_json(to_json(read, done))
        return
    _table(*table(done))
    for reason in reasons(done):
        typer.echo(reason)
    if plot is not None:
        typer.echo(f"picture: {plot}")


@app.command()
def reproduce(
    figure: Annotated[
        str | None,
        typer.Argument(metavar="[FIGURE]", help="Which one; without it, a list.", show_default=False),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Repeat each cell so often; the figure knows a fitting number.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw it as SVG.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Do an experiment of the papers again: a table, a picture, and 'paper says / we measure'."""
    from headrace.commands.reproduce import as_json as to_json
    from headrace.commands.reproduce import figure_list, reproduce_figure, shown
    from headrace.formats.files import require_target

    if figure is None and (seeds is not None or plot is not None):
        raise UsageError(
            "--seeds and --plot are for one figure", hint="name it: headrace reproduce figure-11"
        )
    require_target(plot)
    if figure is None:
        rows = figure_list()
        if as_json:
            _print_json({"figures": rows})
        else:
            _table(["figure", "what"], [list(row.values()) for row in rows])
        return
    with _computing(f"reproducing {figure}") as say:
        made = reproduce_figure(figure, seeds, plot, say)
    if as_json:
        _print_json(to_json(figure, made))
        return
    typer.echo(f"{made.title} ({made.source})")
    _table(list(made.headers), [[shown(cell) for cell in row] for row in made.rows])
    for claim in made.claims:
        typer.echo(f"paper says: {claim.paper}")
        typer.echo(f"  we measure: {claim.measured} ({'agrees' if claim.agrees else 'DISAGREES'})")
        if claim.why:
            typer.echo(f"  why: {claim.why}")
    for note in made.notes:
        typer.echo(note)
    if plot is not None:
        typer.echo(f"picture: {plot}")


def _simulate_runs(
    program: Program,
    grid: Any,
    options: SimulateOptions,
    runs: int,
    files: dict[str, Path | None],
    as_json: bool,
) -> None:
    from headrace.commands.simulate_runs import median_run, simulate_runs

    with _computing(f"simulating {len(program.tasks):,} tasks {runs:,} times") as say:
        repeated = simulate_runs(program, grid, options, runs, say)
    if files["plot"] is not None:
        repeated.plot(files["plot"], f"{program.name} under {repeated.scheduler}")
    if files["gantt"] is not None or files["trace"] is not None:
        _draw_simulated(median_run(program, grid, options, repeated), files["gantt"], files["trace"])
    if as_json:
        _print_json(repeated.json())
    else:
        names = {"plot": "picture", "gantt": "chart of the median run", "trace": "trace of the median run"}
        _table([], [*repeated.rows(), *([names[n], str(path)] for n, path in files.items() if path)])


def _program(spec: str) -> Program:
    from headrace.formats.python_program import is_python_program, load_python_program
    from headrace.formats.reading import read_any_program

    with _working(f"reading {spec}"):
        program = load_python_program(spec) if is_python_program(spec) else read_any_program(spec)
        _ = program.graph
    return program


def _platform(spec: str) -> Platform:
    from headrace.model.platform import Platform

    return Platform.local() if spec == "local" else Platform.read(spec)


def _draw_simulated(outcome: Simulated, gantt: Path | None, trace: Path | None) -> None:
    if gantt is not None:
        outcome.gantt(gantt)
    _draw(outcome.happened, None, trace)


def _draw(made: Plan, gantt: Path | None, trace: Path | None) -> None:
    if gantt is not None:
        made.gantt(gantt)
    if trace is not None:
        from headrace.report.chrome_trace import plan_trace, write_trace

        write_trace(plan_trace(made), trace)


def _summary(made: Plan, files: list[tuple[str, Path | None]]) -> None:
    from headrace.report.tables import summary

    rows = [list(row) for row in summary(made)]
    _table([], rows + [[name, str(path)] for name, path in files if path is not None])


def _table(headers: list[str], rows: list[list[str]]) -> None:
    from headrace.report.tables import print_table

    print_table(headers, rows)


def _ratio(result: Any) -> float | None:
    return None if isinstance(result, str) or not result.bound else result.makespan / result.bound


def _shown(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _print_json(value: dict[str, Any]) -> None:
    json.dump(value, sys.stdout, separators=(",", ":"), allow_nan=False)
    sys.stdout.write("\n")


@contextmanager
def _working(what: str) -> Iterator[Callable[[str], None]]:
    """Say on a terminal what takes time, and how it goes; elsewhere only how it goes."""
    if not sys.stderr.isatty():
        yield lambda text: typer.echo(text, err=True)
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield lambda text: status.update(f"{what}: {text}" if text else what)


@contextmanager
def _computing(what: str) -> Iterator[Callable[[str], None]]:
    """As `_working`, and say so where compiled loops are not there yet."""
    from headrace.arrays.compile_notice import Notice, compile_notice

    with _working(what) as say:
        notice = Notice(tell=say, progress=say) if sys.stderr.isatty() else Notice()
        with compile_notice(notice):
            yield say


if __name__ == "__main__":
    main()
