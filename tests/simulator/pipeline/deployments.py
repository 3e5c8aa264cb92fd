"""Deployments made by hand: copies where the test says, flows in proportion to what each host can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.model.deployment import Deployment, Flow, Placement
from headrace.model.pipeline import FilterProfile, Pipeline, PipelineProblem, Source
from headrace.model.platform import Host, Platform, Site


def lab(powers: Sequence[float], port: float = 1e9, cores: int = 1) -> Platform:
    """One cluster of hosts h0, h1, ... with ports of so many bytes a second."""
    hosts = tuple(Host(f"h{i}", power, cores) for i, power in enumerate(powers))
    return Platform((Site("lab", hosts, bandwidth=port),), name="lab")


def chain(*profiles: tuple[float, float], reader: str = "h0") -> Pipeline:
    """Filters f0, f1, ... with these (seconds, volumes) on a trial host of power 1."""
    filters = [FilterProfile(f"f{i}", seconds, volume) for i, (seconds, volume) in enumerate(profiles)]
    return Pipeline("chain", filters, sources=[Source("all", {reader: 1.0})])


def deployed(
    problem: PipelineProblem, hosts: Mapping[str, Sequence[str]], copies: int = 1, slow: float = 1.0
) -> Deployment:
    """Every filter on its hosts, work shared by power; `slow` scales the throughput that is promised."""
    pipeline = problem.pipeline
    shares: dict[str, dict[str, float]] = {pipeline.reader.name: dict(problem.sources[0].shares)}
    throughput = problem.readable(problem.sources[0])
    for name, used in hosts.items():
        power = {host: problem.capacity(name, host) * copies for host in used}
        total = sum(power.values())
        shares[name] = {host: power[host] / total for host in used}
        throughput = min(throughput, total)
    throughput *= slow
    per_read = {f.name: pipeline.inflow(f.name) / pipeline.reader.volume for f in pipeline.filters}
    return Deployment(
        problem,
        "by hand",
        "first relaxation",
        problem.sources[0].name,
        throughput,
        tuple(
            Placement(
                f.name,
                host,
                copies,
                share,
                throughput * per_read[f.name] * share,
                throughput * share / problem.capacity(f.name, host),
            )
            for f in pipeline.filters
            for host, share in shares[f.name].items()
        ),
        tuple(
            Flow(s.source, s.target, a, b, throughput * volume / pipeline.reader.volume * x * y)
            for s, volume in zip(pipeline.streams, pipeline.volumes, strict=True)
            for a, x in shares[s.source].items()
            for b, y in shares[s.target].items()
        ),
        objective=0.0,
        bound=0.0,
    )
