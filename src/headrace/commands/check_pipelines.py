"""What `headrace check` says of pipelines and deployments."""

from __future__ import annotations

from headrace.formats.deployment_ini import check_header, read_deployment
from headrace.formats.loading import load_machines
from headrace.model.check_case import Violation
from headrace.model.errors import BadPlan
from headrace.model.pipeline import Pipeline, PipelineProblem
from headrace.model.units import plural
from headrace.planners.pipeline.plan import PLANNERS


def pipeline_line(pipeline: Pipeline) -> str:
    """What was read, in one line."""
    names = ", ".join(f.name for f in pipeline.order[:8])
    return (
        f"{plural(len(pipeline.filters), 'filter')} ({names}), {plural(len(pipeline.streams), 'stream')}, "
        f"{plural(len(pipeline.sources), 'source')}; the reader took {pipeline.reader.seconds:g} s for "
        f"{pipeline.reader.volume:g} MB"
    )


def check_deployment(file: str, pipeline: Pipeline | None, platform: str | None) -> tuple[str, list[str]]:
    """A line about a deployment, and what is wrong with it for this pipeline on this platform file."""
    if pipeline is None or platform is None:
        raise BadPlan(
            f"a deployment is checked against its {'pipeline' if pipeline is None else 'platform'}",
            where=file,
            hint=f"give all three: headrace check PIPELINE PLATFORM {file}",
        )
    machines = load_machines(platform)
    problem = PipelineProblem(pipeline, machines.platform, pipeline.knobs, segments=machines.segments)
    made = read_deployment(file, problem)
    broken = [*check_header(file, made), *made.check()]
    if made.planner not in PLANNERS:
        broken.insert(0, Violation("planner", f"{made.planner!r} is not one of {', '.join(PLANNERS)}"))
    state = plural(len(broken), "violation") if broken else "valid"
    summary = (
        f"by {made.planner} ({made.form}) for {pipeline.name} on {machines.platform.name}, "
        f"{made.throughput:.4g} MB/s on {plural(len(made.hosts_used), 'host')}: {state}"
    )
    return summary, [str(v) for v in broken]
