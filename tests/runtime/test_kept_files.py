"""Kept values: what goes in comes out, and nothing else is ever unpickled."""

from __future__ import annotations

import pickle
import random
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.errors import BadFile
from headrace.runtime.durable import checksum_of, write_whole
from headrace.runtime.files import FileData
from headrace.runtime.kept_files import (
    Kept,
    load_kept,
    pickled,
    seal,
    sealed_parts,
    size_of_parts,
    write_kept,
)

KEY = bytes(range(32))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def keep(folder: Path, item: str, value: Any, *, small: bool = False, run: str = "r") -> Kept:
    parts = pickled(value)
    if small:
        return Kept(item, "", bytes(parts[0]), seal(KEY, run, item, parts).hex(), size_of_parts(parts))
    return Kept(item, "f", None, write_kept(folder / "f", KEY, run, item, parts), size_of_parts(parts))


@settings(max_examples=60, deadline=None)
@given(VALUES, st.text(), st.booleans())
def test_values_come_back(tmp_path_factory, value, item, small):
    folder = tmp_path_factory.mktemp("kept")
    kept = keep(folder, item, value, small=small)
    assert load_kept(kept, folder, KEY, "r") == value


@pytest.mark.parametrize(
    "value",
    [
        np.arange(10_000.0).reshape(100, 100),
        np.arange(100)[::2],
        np.asfortranarray(np.ones((30, 40))),
        [np.zeros(0), np.arange(5), b"x" * 70_000],
        np.array(["a", "bc"], dtype=object),
    ],
)
def test_arrays_come_back_and_can_be_changed(tmp_path, value):
    found = load_kept(keep(tmp_path, "x", value), tmp_path, KEY, "r")
    for before, after in zip(
        value if isinstance(value, list) else [value],
        found if isinstance(found, list) else [found],
        strict=True,
    ):
        np.testing.assert_array_equal(before, after)
        if isinstance(after, np.ndarray) and after.size:
            after[0] = after[0]


def test_values_of_classes_that_cannot_be_imported_come_back(tmp_path):
    class Local:
        def __init__(self, x: int) -> None:
            self.x = x

    assert load_kept(keep(tmp_path, "x", Local(5)), tmp_path, KEY, "r").x == 5
    data = FileData("a.txt", b"abc")
    assert load_kept(keep(tmp_path, "x", data), tmp_path, KEY, "r") == data


def test_files_are_private(tmp_path):
    keep(tmp_path, "x", bytes(10_000))
    assert [(p.name, stat.S_IMODE(p.stat().st_mode)) for p in tmp_path.iterdir()] == [("f", 0o600)]


class Bomb:
    """Unpickling it fails the test."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("foreign data was unpickled",))


@pytest.mark.parametrize("small", [False, True])
def test_foreign_values_are_not_unpickled(tmp_path, small):
    parts = [pickle.dumps(Bomb())]
    other = bytes(32)
    kept = Kept("x", "f", None, write_kept(tmp_path / "f", other, "r", "x", parts), 1)
    if small:
        kept = Kept("x", "", parts[0], seal(other, "r", "x", parts).hex(), 1)
    with pytest.raises(BadFile, match="not what was committed"):
        load_kept(kept, tmp_path, KEY, "r")


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize(("item", "run"), [("y", "r"), ("x", "s"), ("", "rx")])
def test_a_value_is_good_for_its_item_and_run_only(tmp_path, item, run, small):
    kept = keep(tmp_path, "x", 5, small=small)
    moved = Kept(item, kept.file, kept.content, kept.checksum, kept.size)
    with pytest.raises(BadFile, match="not what was committed"):
        load_kept(moved, tmp_path, KEY, run)


def test_an_older_value_of_the_same_item_is_not_taken_for_the_committed_one(tmp_path):
    keep(tmp_path, "x", "old")
    old = (tmp_path / "f").read_bytes()
    kept = keep(tmp_path, "x", "new")
    (tmp_path / "f").write_bytes(old)
    with pytest.raises(BadFile):
        load_kept(kept, tmp_path, KEY, "r")


def test_every_flipped_bit_is_found(tmp_path):
    """In 200 files, one bit at random each, in the header as well as in the contents."""
    chance = random.Random(5)
    found = 0
    for number in range(200):
        size = chance.choice([0, 1, 10, 1000, 50_000])
        value = np.frombuffer(chance.randbytes(size), np.uint8) if number % 2 else chance.randbytes(size)
        kept = keep(tmp_path, f"x{number}", value)
        data = bytearray((tmp_path / "f").read_bytes())
        # Half of them in the first 100 bytes: the header is short.
        bit = chance.randrange(min(len(data), 100) * 8 if number % 4 < 2 else len(data) * 8)
        data[bit // 8] ^= 1 << bit % 8
        (tmp_path / "f").write_bytes(data)
        with pytest.raises(BadFile):
            sealed_parts(kept, tmp_path, KEY, "r")
        found += 1
    assert found == 200


def test_damage_of_any_other_kind_is_found(tmp_path):
    kept = keep(tmp_path, "x", [np.arange(9000), np.arange(5)])
    good = (tmp_path / "f").read_bytes()
    for bad in (b"", good[:20], good[:48], good[:-1], good + b"\x00", good[8:], bytes(len(good))):
        (tmp_path / "f").write_bytes(bad)
        with pytest.raises(BadFile):
            load_kept(kept, tmp_path, KEY, "r")
    # Counts and lengths that would need far more memory than there is.
    for start in (40, 48):
        (tmp_path / "f").write_bytes(good[:start] + b"\xff" * 8 + good[start + 8 :])
        with pytest.raises(BadFile):
            load_kept(kept, tmp_path, KEY, "r")
    (tmp_path / "f").unlink()
    with pytest.raises(BadFile, match="cannot be read"):
        load_kept(kept, tmp_path, KEY, "r")


def test_a_file_is_whole_or_not_there(tmp_path):
    path = tmp_path / "x"
    write_whole(path, [b"before"])

    def parts():
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_whole(path, parts())
    assert path.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    assert write_whole(path, [b"af", memoryview(b"ter")]) == checksum_of(path)
    assert path.read_bytes() == b"after"
