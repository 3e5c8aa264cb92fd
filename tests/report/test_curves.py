"""Pictures over an axis: one style for a name, uncertainty, what is cut off, bars from zero."""

from __future__ import annotations

import re

from headrace.experiment.diagram import Diagram
from headrace.report.curves import curves_svg
from headrace.report.ratios import ratios_svg


def diagram(**changes: object) -> Diagram:
    plain = {
        "title": "t",
        "x_label": "x",
        "y_label": "y",
        "x": [1.0, 2.0],
        "curves": {"a": [1.0, 2.0], "b": [1.0, 2.0]},
    }
    return Diagram(**{**plain, **changes})  # type: ignore[arg-type]


def strokes(svg: str, name: str) -> set[str]:
    return set(re.findall(rf"<path [^>]*(stroke=[^>]*)><title>{name}</title></path>", svg))


def test_a_name_has_one_style_in_all_panels() -> None:
    svg = curves_svg(
        [diagram(curves={"ideal": [1.0, 2.0], "a": [1.0, 1.5]}), diagram(curves={"a": [3.0, 4.0]})]
    )
    assert len(strokes(svg, "a")) == 1
    assert strokes(svg, "a") != strokes(svg, "ideal")


def test_the_legend_has_the_dashes_of_the_lines() -> None:
    svg = curves_svg([diagram()])
    (dashes,) = re.findall(r'stroke-dasharray="[^"]*"', next(iter(strokes(svg, "b"))))
    legend = re.findall(r"<line [^>]*stroke-width=\"2\"[^>]*>", svg)
    assert [dashes in line for line in legend] == [False, True]


def test_curves_that_coincide_are_both_seen() -> None:
    """The second is dashed, and its marker is another one."""
    svg = curves_svg([diagram()])
    assert strokes(svg, "a") != strokes(svg, "b")
    assert svg.count("<title>a: ") == svg.count("<title>b: ") == 2
    assert "<circle" in svg
    assert "v7h-7z" in svg


def test_errors_widen_the_axis_and_are_drawn() -> None:
    svg = curves_svg([diagram(errors={"a": [0.5, 3.0]})])
    assert svg.count('stroke-width="1.2"') == 2
    assert ">5</text>" in svg


def test_what_is_cut_off_is_marked_with_its_value() -> None:
    svg = curves_svg([diagram(curves={"a": [10.0, -250.0]}, floor=-60.0)])
    assert ">-250</text>" in svg
    assert ">-60</text>" in svg
    assert ">-200</text>" not in svg


def test_bars_begin_at_zero() -> None:
    svg = curves_svg([diagram(curves={"a": [0.98, 1.02]}, shape="bars")])
    assert ">0</text>" in svg
    points = curves_svg([diagram(curves={"a": [0.98, 1.02]}, shape="points")])
    assert ">0</text>" not in points


def test_an_axis_that_does_not_begin_at_zero_is_marked() -> None:
    marked = "The axis does not begin at 0."
    assert marked in curves_svg([diagram(curves={"a": [0.98, 1.02]}, shape="points")])
    assert marked not in curves_svg([diagram(curves={"a": [0.2, 1.02]}, shape="points")])
    assert marked not in curves_svg([diagram(curves={"a": [-0.98, 1.02]}, shape="points")])


def test_no_point_of_a_comparison_lies_on_another() -> None:
    svg = ratios_svg(["montage"], ["heft", "peft", "minmin"], [[1.2, 1.2, 1.5]])
    places = re.findall(r'<circle cx="([^"]*)" cy="([^"]*)" r="5" fill="[^"]*" fill-opacity', svg)
    assert len(places) == len(set(places)) == 3
