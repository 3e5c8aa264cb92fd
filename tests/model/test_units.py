import math

import numpy as np
import pytest

from headrace.model.errors import HeadraceError
from headrace.model.units import quantity, show_size, show_time


@pytest.mark.parametrize(
    ("text", "what", "value"),
    [
        ("10 Gbit/s", "rate", 1.25e9),
        ("10Gbps", "rate", 1.25e9),
        ("100 MB/s", "rate", 1e8),
        ("1 MiB/s", "rate", 2.0**20),
        ("2 GB", "size", 2e9),
        ("2 GiB", "size", 2.0**31),
        ("1_000 kB", "size", 1e6),
        ("8 bytes", "size", 8.0),
        ("17", "size", 17.0),
        ("0.5 ms", "time", 5e-4),
        ("1.5e3 us", "time", 1.5e-3),
        (".5 h", "time", 1800.0),
        ("2 d", "time", 172800.0),
        (3, "time", 3.0),
        (0, "size", 0.0),
        (np.int64(3), "time", 3.0),
        (np.uint8(3), "size", 3.0),
        (np.float32(0.5), "time", 0.5),
    ],
)
def test_quantities(text, what, value):
    assert quantity(text, what) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("", "size"),
        ("fast", "rate"),
        ("10 Gbit/s", "size"),
        ("10 s", "rate"),
        ("-1 s", "time"),
        ("1 parsec", "time"),
        ("1e400 s", "time"),
        (-1.0, "size"),
        (math.nan, "size"),
        (math.inf, "time"),
        (True, "size"),
        (None, "size"),
        ([1], "time"),
        (b"3 s", "time"),
        (np.True_, "time"),
        (np.array(3.0), "time"),
        (np.float32("nan"), "time"),
    ],
)
def test_what_is_no_quantity(value, what):
    with pytest.raises(HeadraceError) as caught:
        quantity(value, what, where="lab.toml")
    assert repr(value) in str(caught.value)
    assert str(caught.value).startswith("lab.toml: ")
    assert caught.value.hint.startswith(f"a {what} of 0 or more")


def test_sizes_and_times_are_shown_briefly():
    sizes = {0: "0 B", 1234: "1.23 kB", 5.6e6: "5.6 MB", 1e9: "1 GB", 2.5e13: "25 TB"}
    times = {0.0: "0 ms", 1.0: "1 s", 599.4: "599 s", 3600.0: "3600 s", 36060.0: "10 h 1 min"}
    assert {s: show_size(s) for s in sizes} == sizes
    assert {t: show_time(t) for t in times} == times
