"""Files and folders as streams of bytes, and names that try to leave their folder."""

import os
import socket
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.errors import BadFile
from headrace.model.safe_path import safe_path
from headrace.runtime.durable import checksum_of
from headrace.runtime.file_trees import (
    Entry,
    Tree,
    TreeReader,
    TreeWriter,
    checksum_of_tree,
    copy_tree,
    identity_of,
    link_tree,
    remove_tree,
    scan,
)

NAMES = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20
).filter(lambda name: name not in (".", ".."))
TREES = st.dictionaries(
    NAMES, st.one_of(st.binary(max_size=100), st.dictionaries(NAMES, st.binary(max_size=100), max_size=3))
)


def build(root: Path, tree: dict[str, bytes | dict[str, bytes]]) -> None:
    root.mkdir()
    for name, value in tree.items():
        if isinstance(value, dict):
            build(root / name, dict(value))
        else:
            (root / name).write_bytes(value)


def contents(root: Path) -> dict[str, bytes | None]:
    found = {str(p.relative_to(root)): p.read_bytes() if p.is_file() else None for p in root.rglob("*")}
    return dict(sorted(found.items()))


@settings(max_examples=30, deadline=None)
@given(TREES, st.integers(1, 100))
def test_what_is_read_in_ranges_is_written_the_same(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, bytes | dict[str, bytes]], step: int
) -> None:
    folder = tmp_path_factory.mktemp("trees")
    build(folder / "a", tree)
    found = scan(folder / "a")
    reader = TreeReader(folder / "a", found)
    arrived = Tree.of_rows(found.rows())
    writer = TreeWriter(folder / "b", arrived)
    for offset in range(0, found.size, step):
        writer.write(reader.read(offset, step))
    assert writer.finish() == checksum_of_tree(folder / "a")
    assert contents(folder / "b") == contents(folder / "a")
    assert b"".join(reader.chunks()) == reader.read(0, found.size)
    for make, name in ((link_tree, "c"), (copy_tree, "d")):
        make(folder / "a", found, folder / name)
        assert contents(folder / name) == contents(folder / "a")
    remove_tree(folder)


@given(
    st.text(max_size=30)
    | st.lists(st.sampled_from(["..", ".", "", "a", "é" * 200, "/", "\0"]), max_size=5).map("/".join)
)
def test_a_safe_path_stays_in_its_folder(name: str) -> None:
    try:
        path = safe_path(name)
    except BadFile:
        return
    assert not path.is_absolute()
    assert ".." not in path.parts
    whole = os.path.normpath(os.path.join("/top", str(path)))  # noqa: PTH118 - by the characters alone
    assert whole.startswith("/top/")
    assert "\0" not in name
    assert all(len(part.encode()) <= 255 for part in path.parts)
    assert path == PurePosixPath(name)


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../x", "a/../../x", "a\0b", "x" * 300, "", ".", "a//b", "\ud800", "a/"]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(BadFile):
        safe_path(name)


def test_the_checksum_of_a_file_is_that_of_its_contents(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert checksum_of_tree(tmp_path / "x") == checksum_of(tmp_path / "x")


def test_the_checksum_of_a_folder_covers_names_and_links(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a").write_bytes(b"abc")
    sums = [checksum_of_tree(tmp_path / "x")]
    (tmp_path / "x" / "a").rename(tmp_path / "x" / "b")
    sums.append(checksum_of_tree(tmp_path / "x"))
    (tmp_path / "x" / "l").symlink_to("b")
    sums.append(checksum_of_tree(tmp_path / "x"))
    assert len(set(sums)) == 3


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../outside", "sub/../../outside", "up/../../outside", "loop"]
)
def test_links_out_of_a_folder_are_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "outside").touch()
    top = tmp_path / "top"
    (top / "sub").mkdir(parents=True)
    (top / "up").symlink_to("sub")
    (top / "loop").symlink_to(target)
    with pytest.raises(BadFile, match="out of its folder"):
        scan(top)


def test_links_inside_are_kept(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "sub").mkdir(parents=True)
    (top / "sub" / "a").write_text("x")
    (top / "up").symlink_to("sub/a")
    copy_tree(top, scan(top), tmp_path / "copy")
    assert (tmp_path / "copy" / "up").readlink() == Path("sub/a")


def test_pipes_and_sockets_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(BadFile, match="neither a file nor a folder"):
            scan(path)
    (tmp_path / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        with pytest.raises(BadFile):
            scan(tmp_path)


HOSTILE_ROWS = {
    "out of the folder": [("../x", "file", 1, False, "")],
    "absolute": [("/x", "file", 1, False, "")],
    "in no folder": [("a/x", "file", 1, False, "")],
    "through a link": [("a", "link", 0, False, "/etc"), ("a/x", "file", 1, False, "")],
    "twice": [("a", "file", 1, False, ""), ("a", "file", 1, False, "")],
    "a negative size": [("a", "file", -1, False, "")],
    "another kind": [("a", "device", 0, False, "")],
    "two roots": [("", "file", 1, False, ""), ("", "file", 1, False, "")],
    "no text": [(5, "file", 1, False, "")],
}


@pytest.mark.parametrize("rows", HOSTILE_ROWS.values(), ids=HOSTILE_ROWS.keys())
def test_hostile_descriptions_are_refused(rows: list[tuple[object, ...]]) -> None:
    with pytest.raises(BadFile):
        Tree.of_rows(rows)


@pytest.mark.parametrize("target", ["/etc", "../../x"])
def test_a_link_that_arrives_may_not_lead_out(tmp_path: Path, target: str) -> None:
    writer = TreeWriter(tmp_path / "x", Tree((Entry("a", "link", target=target),)))
    with pytest.raises(BadFile, match="out of its folder"):
        writer.finish()
    assert not (tmp_path / "x" / "a").is_symlink()


def test_too_many_and_too_few_bytes_are_noticed(tmp_path: Path) -> None:
    tree = Tree((Entry("", "file", 3),))
    with pytest.raises(OSError, match="more bytes"):
        TreeWriter(tmp_path / "a", tree).write(b"abcd")
    short = TreeWriter(tmp_path / "b", tree)
    short.write(b"ab")
    with pytest.raises(OSError, match="fewer bytes"):
        short.finish()
    short.close()
    (tmp_path / "c").write_bytes(b"a")
    with pytest.raises(OSError, match="shorter"):
        TreeReader(tmp_path / "c", tree).read(0)


def test_identity_changes_with_the_contents(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a").write_bytes(b"abc")
    assert identity_of(tmp_path / "x" / "a") == checksum_of(tmp_path / "x" / "a")
    before = identity_of(tmp_path / "x")
    assert before == identity_of(tmp_path / "x")
    (tmp_path / "x" / "a").write_bytes(b"abcd")
    assert identity_of(tmp_path / "x") != before
