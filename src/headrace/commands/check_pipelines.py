"""Judge pipelines and deployments for `headrace check`."""

from __future__ import annotations

from headrace.formats.deployment_ini import read_deployment
from headrace.formats.machines_ini import read_machines
from headrace.model.errors import BadPlan
from headrace.model.pipeline import Pipeline, PipelineProblem


def pipeline_line(pipeline: Pipeline) -> str:
    """What was understood, in a line."""
    names = ", ".join(f.name for f in pipeline.order[:8])
    return (
        f"{len(pipeline.filters)} filters ({names}), {len(pipeline.streams)} streams, "
        f"{len(pipeline.sources)} sources; the reader took {pipeline.reader.seconds:g} s for "
        f"{pipeline.reader.volume:g} MB"
    )


def judge_deployment(file: str, pipeline: Pipeline | None, platform: str | None) -> tuple[str, list[str]]:
    """A line about a deployment, and the restrictions that it breaks on this platform file."""
    if pipeline is None or platform is None:
        raise BadPlan(
            f"its {'pipeline' if pipeline is None else 'platform'} is not known",
            where=file,
            hint=f"give them next to it: headrace check PIPELINE PLATFORM {file}",
        )
    machines = read_machines(platform)
    problem = PipelineProblem(pipeline, machines.platform, pipeline.knobs, segments=machines.segments)
    made = read_deployment(file, problem)
    broken = made.check()
    state = f"{len(broken)} violation{'s' * (len(broken) > 1)}" if broken else "valid"
    summary = (
        f"by {made.planner} ({made.form}) for {pipeline.name} on {machines.platform.name}, "
        f"{made.throughput:.4g} MB/s on {len(made.hosts_used)} hosts: {state}"
    )
    return summary, [str(v) for v in broken]
