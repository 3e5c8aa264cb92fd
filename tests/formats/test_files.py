"""Whole files in and out, with limits."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.formats import files
from headrace.formats.files import read_file, read_head, write_file
from headrace.formats.loading import load_platform, load_program
from headrace.formats.shapes import read_shape
from headrace.formats.wfformat_shapes import document_adapter
from headrace.model.errors import BadFile


def test_plain_and_packed_are_told_apart_by_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "plain.gz").write_bytes(b"plain")
    (tmp_path / "packed.txt").write_bytes(gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 10)
    assert read_file(tmp_path / "plain.gz") == b"plain"
    assert read_file(tmp_path / "packed.txt") == b"one two"


def test_limit_counts_unpacked_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x" * 1001))
    (tmp_path / "a").write_bytes(b"x" * 1001)
    for name in ("a", "a.gz"):
        assert len(read_file(tmp_path / name, limit=1001)) == 1001
        with pytest.raises(BadFile, match="1000 bytes"):
            read_file(tmp_path / name, limit=1000)


def test_high_ratios_are_refused_only_beyond_the_floor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress(bytes(3_000_000)))
    assert len(read_file(path)) == 3_000_000
    monkeypatch.setattr(files, "BOMB_FLOOR", 1_000_000)
    with pytest.raises(BadFile, match="200 times"):
        read_file(path)


def test_an_honest_ratio_is_accepted_beyond_the_floor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BOMB_FLOOR", 10_000)
    data = b"".join(b'{"id":"t%d"},' % i for i in range(100_000))
    write_file(tmp_path / "a.gz", data)
    assert read_file(tmp_path / "a.gz") == data


def test_head_of_a_file(tmp_path: Path) -> None:
    write_file(tmp_path / "a.gz", b"abc" * 1000)
    write_file(tmp_path / "a", b"abc" * 1000)
    assert read_head(tmp_path / "a.gz", 64) == read_head(tmp_path / "a", 64) == (b"abc" * 22)[:64]


def test_writing_replaces_and_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "x.txt"
    write_file(target, b"old")
    write_file(target, b"new")
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["x.txt"]  # noqa: PTH208


def test_a_failed_write_is_typed_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for target in (tmp_path / "folder", tmp_path / "none" / "x"):
        with pytest.raises(BadFile, match="cannot be written"):
            write_file(target, b"data")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
    assert list((tmp_path / "folder").iterdir()) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[1,\n 2,,]", "line 2 column 4"),
        (b"[" * 100_000, "recursion limit"),
        (b'{"a": "\xff"}', "unicode"),
        (
            b'{"name": "n", "schemaVersion": "1.4", "workflow": '
            b'{"tasks": [{"name": "a", "runtimeInSeconds": Infinity}]}}',
            r"tasks\[0\]\.runtimeInSeconds.*finite",
        ),
        (b"", "EOF"),
    ],
)
def test_bad_json(data: bytes, message: str) -> None:
    with pytest.raises(BadFile, match=message):
        read_shape(document_adapter(), data, "x.json")


def test_documents_of_too_many_values_are_refused_before_parsing() -> None:
    with pytest.raises(BadFile, match="more than 10 values"):
        read_shape(document_adapter(), b"not even JSON" + b"," * 11, "x.json", max_values=10)


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
def test_a_byte_order_mark_is_no_part_of_the_text(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(pack(b"\xef\xbb\xbf{}"))
    assert read_file(path) == read_head(path) == b"{}"


def test_files_that_an_editor_begins_with_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text("\ufeff[[host]]\nname = 'a'\n", encoding="utf-8")
    (tmp_path / "two.json").write_text(
        '\ufeff{"directed": true, "nodes": [{"id": "a"}], "links": []}', encoding="utf-8"
    )
    assert load_platform(tmp_path / "lab.toml").hosts[0].name == "a"
    assert list(load_program(tmp_path / "two.json").tasks) == ["a"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_other_encodings_are_named(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_bytes("\ufeff[[host]]".encode(encoding))
    with pytest.raises(BadFile, match=r"is UTF-16 text.*save it as UTF-8"):
        load_platform(tmp_path / "lab.toml")


def test_a_value_that_fits_none_of_several_kinds_is_named_without_them(tmp_path: Path) -> None:
    text = '{"directed": true, "nodes": [{"id": 1, "work": NaN}], "links": []}'
    (tmp_path / "n.json").write_text(text)
    with pytest.raises(
        BadFile, match=r"nodes\[0\]\.work is nan: input should be a valid string or "
    ) as caught:
        load_program(tmp_path / "n.json")
    assert "finite number" in str(caught.value)
