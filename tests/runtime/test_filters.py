"""The filter API, its runner inside one process, and the two example applications."""

from __future__ import annotations

import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.formats.python_program import load_from_file
from headrace.model.errors import BadProgram, UsageError
from headrace.runtime.filters import App, Buffer, Filter, Output, Reader, Unit, Work
from headrace.runtime.filters_here import run_here

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def averager() -> Any:
    load_from_file(f"{EXAMPLES}/averager.py:build")
    return sys.modules["averager"]


@pytest.fixture(scope="module")
def microscope() -> Any:
    load_from_file(f"{EXAMPLES}/microscope.py:build")
    return sys.modules["microscope"]


class Letters(Reader):
    """Sends the letters of its share of a text, one a buffer."""

    def init(self, work: Work) -> None:
        text = work.settings["text"]
        self.text = text[round(len(text) * work.begin) : round(len(text) * work.end)]

    def read(self, out: Output) -> None:
        for letter in self.text:
            out.send(letter.encode(), "vowels" if letter in "aeiou" else "others")


class Upper(Filter):
    def process(self, buffer: Buffer, out: Output) -> None:
        out.send(buffer.data.upper())


class Join(Filter):
    def init(self, work: Work) -> None:
        self.seen: list[str] = []

    def process(self, buffer: Buffer, out: Output) -> None:
        self.seen.append(f"{buffer.stream[0]}{buffer.data.decode()}")

    def finalize(self, out: Output) -> None:
        out.send(" ".join(sorted(self.seen)).encode())


def diamond(*texts: str) -> App:
    app = App("diamond", buffer=100, units=[Unit(text, {"text": text}) for text in texts])
    app.filter("letters", Letters)
    app.filter("upper", Upper)
    app.filter("join", Join)
    app.stream("letters", "upper", "vowels")
    app.stream("letters", "join", "others")
    app.stream("upper", "join", "big")
    return app


def test_streams_fan_out_and_in_and_every_unit_is_a_cycle():
    assert run_here(diamond("headrace", "flow")) == {"join": [b"bA bA bE bE oc od oh or", b"bO of ol ow"]}


@pytest.mark.parametrize("copies", [{"letters": 3}, {"upper": 4}, {"letters": 2, "upper": 3}])
def test_copies_change_nothing(copies):
    assert run_here(diamond("headrace"), copies) == run_here(diamond("headrace"))


def test_more_copies_of_the_last_filter_share_the_buffers():
    parts = run_here(diamond("headrace"), {"join": 2})["join"]
    assert len(parts) == 2
    assert sorted(b" ".join(parts).split()) == b"bA bA bE bE oc od oh or".split()


def test_order_puts_producers_first_and_finds_circles():
    app = App("loop")
    app.filter("b", Filter)
    app.filter("a", Filter, inputs=["b"])
    assert app.order == ("b", "a")
    app.filter("c", Filter)
    app.stream("c", "b")
    assert app.order == ("c", "b", "a")
    app.stream("a", "b")
    with pytest.raises(BadProgram, match="cycle through or before a, b"):
        _ = app.order


def test_inconsistent_applications_are_refused():
    app = App("x")
    app.filter("a", Reader)
    with pytest.raises(BadProgram, match="two filters are named 'a'"):
        app.filter("a", Reader)
    with pytest.raises(BadProgram, match="needs filter 'b'"):
        app.stream("a", "b")
    with pytest.raises(BadProgram, match="is of type int"):
        app.filter("n", 3)  # type: ignore[arg-type]
    app.filter("b", Filter, inputs=["a"])
    with pytest.raises(BadProgram, match="two streams are named 'a-b'"):
        app.stream("a", "b")
    with pytest.raises(BadProgram, match="no unit"):
        App("x", units=[])
    with pytest.raises(BadProgram, match="there is no filter"):
        _ = App("x").order
    for size in ("much", 0, -3):
        with pytest.raises(BadProgram):
            App("x", buffer=size)


def test_a_filter_without_input_must_be_a_reader():
    app = App("x")
    app.filter("a", Filter)
    with pytest.raises(BadProgram, match="not a Reader"):
        run_here(app)


class Sends(Reader):
    def __init__(self, data: bytes, stream: str = "") -> None:
        self.data, self.stream = data, stream

    def read(self, out: Output) -> None:
        out.send(self.data, self.stream)


def test_what_is_sent_must_fit_and_name_a_stream():
    def sending(*args: Any) -> App:
        app = App("x", buffer=10)
        app.filter("a", partial(Sends, *args))
        app.filter("b", Filter, inputs=["a"])
        return app

    run_here(sending(b"0123456789"))
    with pytest.raises(UsageError, match="11 bytes"):
        run_here(sending(b"0123456789x"))
    with pytest.raises(UsageError, match="no stream 'c'"):
        run_here(sending(b"", "c"))
    two = sending(b"")
    two.stream("a", "b", "second")
    with pytest.raises(UsageError, match="not named"):
        run_here(two)
    with pytest.raises(UsageError, match="0 copies of 'b'"):
        run_here(two, {"b": 0})


@pytest.mark.parametrize("copies", [{}, {"ArrayAdder": 4}, {"ArrayReader": 3, "ArrayAdder": 2}])
@pytest.mark.parametrize("count", [1, 9, 20_000, 45_007])
def test_averager_is_right(averager, count, copies):
    (line,) = run_here(averager.build(0.05, count), copies)["ArrayAverager"]
    counted, average = line.split()
    assert int(counted) == count
    assert float(average) == pytest.approx(math.fsum(averager.numbers(0, count)) / count, rel=1e-13)


def test_adder_sums_exactly_and_sends_a_tenth(averager):
    table = np.array([[1e16, 1.0], [1.0, 2.0], [1.0, 3.0], [-1e16, 4.0]])
    assert averager.exact_sums(table).tolist() == [2.0, 10.0]
    sent: list[bytes] = []
    sink = type("Sink", (), {"send": lambda self, data, stream="": sent.append(data)})()
    averager.ArrayAdder(1.0).process(Buffer("s", averager.numbers(0, 20_000).tobytes()), sink)
    assert len(sent[0]) == 8 + 16_000


@pytest.mark.parametrize("copies", [{}, {"Reader": 2, "Decompress": 3, "Clip": 2, "Zoom": 2}])
@pytest.mark.parametrize("look", [(0, 0, 256, 256, 1), (100, 40, 600, 300, 4), (512, 255, 2, 2, 1)])
def test_microscope_shows_what_numpy_cuts_and_shrinks(microscope, look, copies):
    wanted = microscope.Look(*look)
    slide = np.block([[[microscope.paint_tile(row, column)] for column in range(2)] for row in range(4)])
    part = slide[wanted.top : wanted.top + wanted.height, wanted.left : wanted.left + wanted.width].astype(
        int
    )
    z = wanted.zoom
    small = sum(part[i::z, j::z] for i in range(z) for j in range(z)) // z**2
    file = b"".join(run_here(microscope.build(wanted), copies)["View"])
    assert file == b"P6 %d %d 255\n" % small.shape[1::-1] + small.astype(np.uint8).tobytes()


def test_microscope_refuses_a_zoom_that_does_not_divide(microscope):
    with pytest.raises(ValueError, match="zoom 3"):
        run_here(microscope.build(microscope.Look(0, 0, 9, 9, 3)))
