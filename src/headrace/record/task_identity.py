"""Identity of tasks: a digest of everything that determines what a task makes.

It covers the function's code (`headrace.record.code_parts`), its parameters, the contents of inputs from outside, the
identities of the tasks whose outputs it reads or that it comes after, its command line, and what the user declares. It
does not cover run-time estimates, names of tasks and Python items, time limits, or where a task runs. Tasks of one
program that agree in all of this, such as repetitions of a random experiment, are numbered.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from headrace.model.errors import BadFile
from headrace.model.program import Command, Data, Program, Task
from headrace.record.code_parts import Code, NotUnderstoodError, code_of, digest_of, value_digest
from headrace.runtime.file_trees import checksum_of_tree, scan
from headrace.runtime.url_files import is_url

_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib")


@dataclass(frozen=True)
class Declared:
    """What the user declares to count: versions of packages, environment variables, other versions, the machine."""

    facts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        packages: Iterable[str] = (),
        environment: Iterable[str] = (),
        versions: Mapping[str, Any] | None = None,
        machine: str = "",
    ) -> Declared:
        facts = {f"package {name}": _version(name) for name in packages}
        facts |= {f"environment variable {name}": os.environ.get(name, "(not set)") for name in environment}
        facts |= {f"version of {name}": str(value) for name, value in (versions or {}).items()}
        return cls(facts | ({"machine": machine} if machine else {}))

    @property
    def digest(self) -> str:
        return digest_of([json.dumps(sorted(self.facts.items()))]) if self.facts else ""


def _version(package: str) -> str:
    try:
        return version(package)
    except (PackageNotFoundError, ValueError):
        raise BadFile(
            f"package {package[:60]!r} is not installed here",
            where="packages",
            hint="install it, or leave it out",
        ) from None


class Bodies:
    """The code of functions and commands, each looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Code]] = {}
        self.codes: dict[str, Code] = {}
        self.unknown: dict[str, str] = {}
        """Functions whose changes could not be noticed: what they refer to."""

    def code(self, body: Any) -> Code:
        """The code of a body without its keywords; one that is not understood is like no other."""
        found = self._known.get(id(body))
        if found is None:
            try:
                code = code_of(body)
                if isinstance(body, Command):
                    code = Code(digest_of([code.digest, *_scripts(body)]), code.parts)
            except (NotUnderstoodError, RecursionError) as error:
                self.unknown[getattr(body, "__qualname__", str(type(body)))] = (
                    str(error) or "deeply nested data"
                )
                code = Code(f"unknown {secrets.token_hex(16)}", ())
            found = self._known[id(body)] = (body, code)
            self.codes[code.digest] = code
        return found[1]


def _scripts(command: Command) -> list[str]:
    """Checksums of programs and files that a command names by absolute paths, except the system's own."""
    found = []
    for argument in command.argv:
        if argument.startswith("/") and not argument.startswith(_SYSTEM) and Path(argument).is_file():
            found.append(f"{argument} {checksum_of_tree(Path(argument))}")
    return found


def unwrapped(body: Any) -> tuple[Any, dict[str, Any]]:
    """A function and the keywords that are bound to it: these are parameters of the task.

    >>> unwrapped(functools.partial(round, ndigits=2))
    (<built-in function round>, {'ndigits': 2})
    """
    keywords: dict[str, Any] = {}
    while isinstance(body, functools.partial) and not body.args:
        keywords = {**body.keywords, **keywords}
        body = body.func
    return body, keywords


def input_digest(item: Data, base: Path, contents: bool = True, largest: float = math.inf) -> str:
    """The digest of an input: of a file its name and contents, of a URL its text, of a value the value. O(bytes).

    A file of more than `largest` bytes is not read, and like no other.
    """
    if item.path is None or item.value is not None:
        try:
            return digest_of(["value", value_digest(item.value)])
        except (NotUnderstoodError, RecursionError):
            return f"unknown {secrets.token_hex(16)}"
    if is_url(item.path):
        return digest_of(["url", item.path])
    path = base / item.path
    if not contents:
        return digest_of(["path", str(path)])
    try:
        tree = scan(path)
        if tree.size > largest:
            return f"unknown {secrets.token_hex(16)}"
        executable = [str(entry.executable) for entry in tree.entries[:1]]
        return digest_of(["file", path.name, *executable, checksum_of_tree(path, tree)])
    except OSError as error:
        raise BadFile(
            f"input {item.name!r} cannot be read: {error.strerror or error}",
            where=str(path),
            hint="check the path",
        ) from None


def begin_digest(code: str, task: Task, body: Any, declared: str) -> hashlib.blake2b:
    """What all instances of a task with one function share."""
    digest = hashlib.blake2b(digest_size=16)
    shared = ["task 1", code, str(len(task.outputs)), declared]
    if isinstance(body, Command):
        shared += ["command", *task.inputs, "->", *task.outputs]
    digest.update("\0".join(shared).encode("utf-8", "backslashreplace") + b"\1")
    return digest


def end_digest(begun: hashlib.blake2b, ordinal: int, parameters: Sequence[str], inputs: Sequence[str]) -> str:
    """The identity of an instance: parameters are texts `name=digest`, inputs identities of items, in order."""
    digest = begun.copy()
    digest.update("\0".join((str(ordinal), *parameters, "", *inputs)).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()


def parameter_text(name: str, value: Any) -> str:
    """A parameter in an identity; one whose changes could not be noticed is like no other.

    >>> parameter_text("sigma", 0.5)
    'sigma=float 0.5'
    """
    if isinstance(value, bool | int | float | str):
        return f"{name}={type(value).__name__} {value!r}"
    try:
        return f"{name}={value_digest(value)}"
    except (NotUnderstoodError, RecursionError):
        return f"{name}=unknown {secrets.token_hex(16)}"


def item_identity(task: str, output: int) -> str:
    """The identity of the k-th output of a task."""
    return task if output == 0 else f"{task}.{output}"


def ordinals(program: Program, known: Bodies) -> dict[str, int]:
    """The number of each task among those with the same code, keywords and inputs: O(tasks)."""
    seen: dict[Any, int] = {}
    found = {}
    for task in program.tasks.values():
        function, keywords = unwrapped(task.body)
        shown = tuple(sorted(parameter_text(name, value) for name, value in keywords.items()))
        begun = begin_digest(known.code(function).digest, task, function, "")
        key = (begun.digest(), shown, task.inputs, task.after)
        found[task.name] = seen.get(key, 0)
        seen[key] = found[task.name] + 1
    return found


@dataclass(frozen=True)
class TaskFacts:
    """What the identity of a task was made of, for `headrace why`."""

    identity: str
    task: str
    base: str
    """Its name in the program before combinations were merged."""
    code: str
    parameters: Mapping[str, str]
    inputs: Mapping[str, str]
    """Identity of each input, by its name in the program."""
    declared: Mapping[str, str]
    labels: Mapping[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        return json.dumps(
            {
                "base": self.base,
                "parameters": dict(self.parameters),
                "inputs": dict(self.inputs),
                "declared": dict(self.declared),
                "labels": dict(self.labels),
            }
        )


@dataclass(frozen=True)
class ProgramIdentities:
    """The identities of a program's tasks and items."""

    tasks: Mapping[str, TaskFacts]
    items: Mapping[str, str]
    codes: Mapping[str, Code]


def program_identities(
    program: Program, base: Path, declared: Declared | None = None, largest: float = math.inf
) -> ProgramIdentities:
    """The identities of a program that runs as it is: O(tasks + reads + bytes of inputs).

    >>> program = Program()
    >>> x = program.input("x", value=2)
    >>> made = program.task(abs, inputs=[x], outputs=["y"], name="t")
    >>> first = program_identities(program, Path()).items["y"]
    >>> other = Program()
    >>> made = other.task(abs, inputs=[other.input("x", value=3)], outputs=["y"], name="t")
    >>> first == program_identities(program, Path()).items["y"], first == program_identities(other, Path()).items["y"]
    (True, False)
    """
    declared = declared or Declared()
    known = Bodies()
    numbers = ordinals(program, known)
    items = {item.name: input_digest(item, base, largest=largest) for item in program.inputs()}
    facts: dict[str, TaskFacts] = {}
    names = list(program.tasks)
    for t in program.graph.order.tolist():
        task = program.tasks[names[t]]
        function, keywords = unwrapped(task.body)
        code = known.code(function)
        begun = begin_digest(code.digest, task, function, declared.digest)
        texts = [parameter_text(name, keywords[name]) for name in sorted(keywords)]
        read = [items[name] for name in task.inputs] + [facts[name].identity for name in task.after]
        identity = end_digest(begun, numbers[task.name], texts, read)
        for k, name in enumerate(task.outputs):
            items[name] = item_identity(identity, k)
        facts[task.name] = TaskFacts(
            identity, task.name, task.name, code.digest, {n: repr(v)[:200] for n, v in keywords.items()},
            {name: items[name] for name in task.inputs}, declared.facts,
        )  # fmt: skip
    return ProgramIdentities(facts, items, known.codes)
