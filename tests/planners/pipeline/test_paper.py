"""The placements that the paper publishes, where they follow from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.model.deployment import Deployment
from headrace.model.pipeline import Pipeline, PipelineProblem
from headrace.model.platform import Platform
from headrace.planners.pipeline.plan import deploy_lpsched, deploy_total, deploy_trivial
from planners.pipeline.instances import averager, maryland, microscope, ufmg


def planned(pipeline: Pipeline, platform: Platform) -> Deployment:
    made = deploy_lpsched(PipelineProblem(pipeline, platform, pipeline.knobs))
    assert made.check() == []
    assert made.gap < 1e-4
    return made


def hosts(made: Deployment, name: str) -> list[str]:
    return [p.host for p in made.of(name)]


def copies(made: Deployment) -> list[int]:
    return [made.copies(f.name) for f in made.problem.pipeline.filters]


def test_adder_of_weight_two() -> None:
    made = planned(averager(2.1, (1,)), ufmg(without=(7, 8)))
    assert made.form == "strict"
    assert made.predicted_seconds == pytest.approx(53.2)
    assert hosts(made, "reader") == ["MG1"]
    assert hosts(made, "adder") == ["MG2", "MG3", "MG4"]
    assert hosts(made, "averager") == ["MG5"]


def test_adder_of_weight_five() -> None:
    made = planned(averager(4.95, (1,)), ufmg(without=(7, 8)))
    assert made.hosts_used == ("MG1", "MG2", "MG3", "MG4", "MG5", "MG6", "MG9")
    assert hosts(made, "averager") == ["MG9"]


def test_adder_of_weight_seven_under_load() -> None:
    loaded = (4, 5, 6, 7, 8, 10, 13, 14)
    made = planned(averager(6.95, (1,)), ufmg(loaded=loaded))
    assert copies(made) == [1, 10, 1]
    listed = planned(averager(6.95, (1,)), ufmg(loaded=(4, 5, 6, 7, 8)))
    assert {"MG10", "MG14"} <= set(listed.hosts_used)


@pytest.mark.parametrize(
    ("sources", "loaded", "chosen", "seconds"),
    [
        (((1,), (13, 14)), (), "MG1", 53.2),
        (((1,), (13, 14, 15, 16)), (), "MG13+MG14+MG15+MG16", 39.9),
        (((1,), (13, 14)), (1,), "MG13+MG14", 79.8),
        (((1,), (13, 14, 15, 16)), (13, 14, 15, 16), "MG1", 53.2),
    ],
)
def test_choice_of_the_source(
    sources: tuple[tuple[int, ...], ...], loaded: tuple[int, ...], chosen: str, seconds: float
) -> None:
    made = planned(averager(4.95, *sources, readers=True), ufmg(loaded=loaded, readers=True))
    assert made.source == chosen
    assert made.predicted_seconds == pytest.approx(seconds)


def test_microscope_in_one_cluster() -> None:
    made = planned(microscope(), maryland())
    assert made.form == "first relaxation"
    assert copies(made) == [1, 31, 7, 5, 1]
    assert len(made.hosts_used) == 45
    assert made.throughput == pytest.approx(12.5)
    assert any("Decompress needs" in n or "decompress needs 41 hosts" in n for n in made.notes)
    problem = made.problem
    trivial, total = deploy_trivial(problem), deploy_total(problem)
    assert copies(trivial) == [1, 1, 1, 1, 1]
    assert copies(total) == [1, 35, 6, 5, 1]
    assert trivial.check() == []
    assert total.check() == []
    assert trivial.throughput < total.throughput < made.throughput


@pytest.mark.parametrize(
    ("link", "cross", "least", "ohio"),
    [
        (1.0, 1.0, 0.7, False),
        (2.0, 1.0, 0.7, False),
        (1.0, 1.0, 0.0, False),
        (5.0, 1.0, 0.7, True),
        (5.0, 0.9, 0.7, False),
    ],
)
def test_microscope_in_two_clusters(link: float, cross: float, least: float, ohio: bool) -> None:
    pipeline = microscope()
    pipeline = Pipeline(
        pipeline.name,
        pipeline.filters,
        pipeline.streams,
        pipeline.sources,
        replace(pipeline.knobs, least=least, cross=cross),
    )
    made = planned(pipeline, maryland(ohio=link))
    assert any(h.startswith("OH") for h in made.hosts_used) == ohio
    if not ohio:
        assert copies(made) == [1, 31, 7, 5, 1]
