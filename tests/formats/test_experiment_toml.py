"""Experiment files: what they say, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.formats.experiment_toml import read_experiment
from headrace.formats.experiment_values import read_values
from headrace.formats.tables import Table
from headrace.model.errors import BadFile

GOOD = """
name = "edges"
program = "edges.py:program"
packages = ["numpy"]
versions = { archive = "2026-05" }
[replace.image]
with = { north = "a.png", south = "b.png" }
[replace.detect]
with = ["edges.py:sobel", "edges.py:canny"]
[set.detect]
sigma = { from = 0.5, to = 3.0, steps = 6 }
[combine]
except = "detect = 'sobel' and sigma > 1"
"""


def read(folder: Path, text: str):
    (folder / "e.toml").write_text(text)
    return read_experiment(folder / "e.toml")


def values(given: object) -> tuple[object, ...]:
    return read_values(given, "n", Table({}, "e.toml")).values


def test_a_file_says_what_is_substituted_and_how_it_is_combined(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD)
    image, detect, sigma = found.substitutions
    assert (image.target, image.labels, image.values.values) == (
        "image",
        ("north", "south"),
        ("a.png", "b.png"),
    )
    assert (detect.target, detect.parameter) == ("detect", "")
    assert (sigma.target, sigma.parameter, sigma.values.values) == (
        "detect",
        "sigma",
        (0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
    )
    assert found.excepted == ("detect = 'sobel' and sigma > 1",)
    assert (found.name, found.mode, found.packages, found.versions) == (
        "edges", "product", ("numpy",), {"archive": "2026-05"},
    )  # fmt: skip


def test_steps_are_whole_numbers_if_their_ends_are_and_all_would_be() -> None:
    assert values({"from": 1, "to": 9, "steps": 3}) == (1, 5, 9)
    assert values({"from": 1, "to": 2, "steps": 3}) == (1.0, 1.5, 2.0)
    assert values({"from": 1.0, "to": 3.0, "steps": 3}) == (1.0, 2.0, 3.0)
    assert values({"from": 0.01, "to": 100.0, "steps": 5, "scale": "log"}) == (0.01, 0.1, 1.0, 10.0, 100.0)


@given(st.integers(2, 60), st.integers(0, 1000))
def test_a_latin_hypercube_has_one_draw_in_each_slice(count: int, seed: int) -> None:
    drawn = values({"from": 0.0, "to": float(count), "latin": count, "seed": seed})
    assert sorted(int(min(v, count - 1e-9)) for v in drawn) == list(range(count))
    assert drawn == values({"from": 0.0, "to": float(count), "latin": count, "seed": seed})


def test_draws_of_different_parameters_differ_and_are_drawn_together(tmp_path: Path) -> None:
    drawn = "{ from = 0.0, to = 1.0, random = 5 }"
    text = f'program = "p.py"\n[set.a]\nx = {drawn}\ny = {drawn}'
    x, y = read(tmp_path, text).substitutions
    assert x.values.drawn == y.values.drawn == "random"
    assert x.values.values != y.values.values


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "there is no program"),
        ('program = "a.py"\n[sweep]\ncommand = ["x"]\nstdout = "o"', "both a program and [sweep]"),
        ('program = "a.py"\nrepeat = 3', "unknown key 'repeat'"),
        ('program = "a.py"\n[replace.a]\nwith = []', "empty list"),
        ('program = "a.py"\n[replace.a]\nwhit = [1]', "unknown key 'whit'"),
        ('program = "a.py"\n[replace.a]\nwith = [{ x = 1 }]', "with has"),
        ('program = "a.py"\n[set.a]\n"x y" = [1]', "not the name of a parameter"),
        ('program = "a.py"\n[set.a]\nx = { from = 1 }', "steps, random and latin"),
        ('program = "a.py"\n[set.a]\nx = { from = 1, to = 2, steps = 0 }', "steps is 0"),
        ('program = "a.py"\n[set.a]\nx = { from = -1, to = 2, steps = 3, scale = "log" }', "above 0"),
        ('program = "a.py"\n[set.a]\nx = { from = -1e308, to = 1e308, steps = 3 }', "too wide"),
        ('program = "a.py"\n[set.a]\nx = [inf]', "finite"),
        ('program = "a.py"\n[set.a]\nx = { from = 1, to = 2, steps = 1000000000 }', "steps is"),
        ('program = "a.py"\n[combine]\nmode = "all"', "mode is 'all'"),
        ('program = "a.py"\n[combine]\nmode = "groups"', "mode is groups"),
        ('program = "a.py"\n[combine]\nexcept = 3', "except is 3"),
        ('program = "a.py"\nname = "../x"', "name is"),
        ("[sweep]\ncommand = 'rm -rf'\nstdout = 'o'", "command is"),
        ("[sweep]\ncommand = ['x']", "no output"),
        ('program = "a.py"\npackages = ["a", "a"]', "duplicate"),
        ("program = [", "not valid TOML"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_the_place(tmp_path: Path, text: str, part: str) -> None:
    with pytest.raises(BadFile) as caught:
        read(tmp_path, text)
    assert part in str(caught.value)
    assert "e.toml" in str(caught.value)
