"""Identity of code: what matters changes it, what does not leaves it as it is."""

from __future__ import annotations

import functools
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace.formats.python_program import import_file
from headrace.record.code_parts import NotUnderstoodError, code_of, value_digest
from headrace.record.code_source import changed_line
from headrace.record.task_identity import Declared, program_identities

MAIN = '''
import functools
import parts_helper
from parts_helper import near

SCALE = 3
NAMES = {"a": [1, 2]}


def outer(x, by=2, *, also=1):
    """Text."""
    def inner(y):
        return y + 5

    return helper(inner(x)) * SCALE * by + also + NAMES["a"][0]


def helper(x):
    return parts_helper.far(x) - near(x)


def lazy(x):
    import parts_helper

    return parts_helper.unused(x)


class Model:
    rate = 4

    def __init__(self, start):
        self.start = start

    def __call__(self, x):
        return x * self.rate + self.start


@functools.cache
def cached(x):
    return x + 6


def recursive(n):
    return 1 if n < 2 else n * recursive(n - 1)
'''
HELPER = """
BASE = 10


def far(x):
    return x + BASE


def near(x):
    return x - 20


def unused(x):
    return x + 30
"""


@pytest.fixture
def digest(tmp_path, monkeypatch):
    """The digest of a name in the file, after replacements in it and in its helper."""
    monkeypatch.syspath_prepend(tmp_path)
    number = 0

    def of(name: str = "outer", main=(), helper=(), make=lambda found: found):
        nonlocal number
        number += 1
        sys.modules.pop("parts_helper", None)
        text, other = MAIN, HELPER
        for old, new in main:
            assert old in text
            text = text.replace(old, new)
        for old, new in helper:
            assert old in other
            other = other.replace(old, new)
        (tmp_path / "parts_helper.py").write_text(other)
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "parts_main.py").write_text(text)
        import importlib

        importlib.invalidate_caches()
        sys.dont_write_bytecode = True
        module = import_file(folder / "parts_main.py")
        return code_of(make(getattr(module, name))).digest

    before = sys.dont_write_bytecode
    yield of
    sys.dont_write_bytecode = before
    for name in ("parts_helper", "parts_main"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("main", "helper"),
    [
        ([("y + 5", "y + 6")], []),
        ([("* by", "/ by")], []),
        ([("by=2", "by=3")], []),
        ([("also=1", "also=2")], []),
        ([("SCALE = 3", "SCALE = 4")], []),
        ([("[1, 2]", "[7, 2]")], []),
        ([("far(x) - near(x)", "near(x) - far(x)")], []),
        ([], [("BASE = 10", "BASE = 11")]),
        ([], [("x + BASE", "x * BASE")]),
        ([], [("x - 20", "x - 21")]),
    ],
)
def test_changes_that_matter(digest, main, helper) -> None:
    assert digest(main=main, helper=helper) != digest()


@pytest.mark.parametrize(
    ("main", "helper"),
    [
        ([('"""Text."""', '"""Another text."""')], []),
        ([('    """Text."""\n', "")], []),
        ([("    return helper", "    # a comment\n\n    return helper")], []),
        ([("helper(inner(x)) * SCALE", "helper( inner(x) )  *  SCALE")], []),
        ([("rate = 4", "rate = 5")], []),
        ([("n < 2", "n < 3")], []),
        ([], [("x + 30", "x + 31")]),
        ([("SCALE = 3", "OTHER = 9\nSCALE = 3")], []),
    ],
)
def test_changes_that_do_not_matter(digest, main, helper) -> None:
    assert digest(main=main, helper=helper) == digest()


def test_modules_that_are_imported_inside_count_as_a_whole(digest) -> None:
    assert digest("lazy", helper=[("x + 30", "x + 31")]) != digest("lazy")
    assert digest("lazy", helper=[("x + 30", "x + 30  # the same")]) == digest("lazy")


def test_objects_count_with_their_class_and_state(digest) -> None:
    one = digest("Model", make=lambda kind: kind(1))
    assert one == digest("Model", make=lambda kind: kind(1))
    assert one != digest("Model", make=lambda kind: kind(2))
    assert one != digest("Model", main=[("rate = 4", "rate = 5")], make=lambda kind: kind(1))
    assert one != digest("Model", main=[("* self.rate", "- self.rate")], make=lambda kind: kind(1))
    method = digest("Model", make=lambda kind: kind(1).__call__)
    assert method != digest("Model", make=lambda kind: kind(2).__call__)


def test_wrapped_recursive_and_bound_functions(digest) -> None:
    assert digest("cached") != digest("cached", main=[("x + 6", "x + 7")])
    assert digest("recursive") != digest("recursive", main=[("n < 2", "n < 1")])
    assert digest("recursive") == digest("recursive")
    bound = digest(make=lambda f: functools.partial(f, 1, by=3))
    assert bound != digest(make=lambda f: functools.partial(f, 1, by=4))
    assert bound != digest(make=lambda f: functools.partial(f, 2, by=3))


def test_captured_values_and_lambdas() -> None:
    def made(n):
        return lambda x: x + n

    assert code_of(made(1)).digest == code_of(made(1)).digest
    assert code_of(made(1)).digest != code_of(made(2)).digest
    assert code_of(made(np.arange(3))).digest != code_of(made(np.arange(4))).digest
    two = [lambda x: x + 1, lambda x: x + 2]
    assert code_of(lambda x: two[0](x)).digest != code_of(two[0]).digest


def test_values_of_all_kinds_have_digests_that_tell_them_apart() -> None:
    values = [
        1, 1.0, True, "1", b"1", None, [1], (1,), {1}, frozenset([1]), {1: 2}, {1: 3}, np.array([1]), np.array([1.0]),
        np.float64(1), Path("a"), range(3), slice(1, 2), 1j, np.sin, len, hr.Program, [[1]], {"a": {"b": 1}},
    ]  # fmt: skip
    digests = [value_digest(value) for value in values]
    assert len(set(digests)) == len(values)
    assert digests == [value_digest(value) for value in values]


def test_a_container_that_holds_itself_has_a_digest() -> None:
    own: list[object] = [1]
    own.append(own)
    assert value_digest(own) == value_digest(own)


def test_what_cannot_be_compared_is_never_reused() -> None:
    import threading

    lock = threading.Lock()
    with pytest.raises(NotUnderstoodError):
        code_of(lambda: lock)

    def identity() -> str:
        program = hr.Program()
        program.task(lambda: lock, outputs=["x"], name="t")
        return program_identities(program, Path()).items["x"]

    assert identity() != identity()


def test_declared_facts_count(monkeypatch) -> None:
    program = hr.Program()
    program.task(abs, inputs=[program.input("x", value=1)], outputs=["y"], name="t")

    def identity(declared: Declared | None = None) -> str:
        return program_identities(program, Path(), declared).items["y"]

    monkeypatch.setenv("CASE_MODE", "a")
    first = identity(Declared.of(["numpy"], ["CASE_MODE"], {"data": 1}))
    assert first == identity(Declared.of(["numpy"], ["CASE_MODE"], {"data": 1}))
    assert (
        len({first, identity(), identity(Declared.of(["pytest"])), identity(Declared.of(machine="x"))}) == 4
    )
    assert first != identity(Declared.of(["numpy"], ["CASE_MODE"], {"data": 2}))
    monkeypatch.setenv("CASE_MODE", "b")
    assert first != identity(Declared.of(["numpy"], ["CASE_MODE"], {"data": 1}))


def test_files_count_by_name_and_contents(tmp_path: Path) -> None:
    def identity(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        program = hr.Program()
        program.task(abs, inputs=[program.input("x", name)], outputs=["y"], name="t")
        return program_identities(program, tmp_path).items["y"]

    assert identity("a.txt", b"1") == identity("a.txt", b"1")
    assert len({identity("a.txt", b"1"), identity("a.txt", b"2"), identity("b.txt", b"1")}) == 3


def test_the_changed_line_is_found() -> None:
    before = "def f(x):\n    y = x\n    return y\n"
    after = "def f(x):\n    # first\n    y = (\n        x + 1)\n    return y\n"
    change = changed_line(before, after)
    assert change is not None
    assert (change.line, change.before, change.after) == (3, "y = x", "y = x + 1")
    assert changed_line(before, textwrap.indent(before, "")) is None


def test_identities_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    import os
    import subprocess

    (tmp_path / "seeded.py").write_text(
        "NAMES = {'x', 'y', 'z'}\nTABLE = {'b': {3, 1}, 'a': frozenset('pqr')}\n\n\n"
        "def f(x):\n    return x in NAMES or x in {'k', 'l', 'm'} or TABLE['a']\n"
    )
    text = (
        "from pathlib import Path; from headrace.formats.python_program import import_file;"
        "from headrace.record.code_parts import code_of;"
        "print(code_of(import_file(Path('seeded.py')).f).digest)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=tmp_path,
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1
