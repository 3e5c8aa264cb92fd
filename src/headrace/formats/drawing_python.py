"""The Python program of a drawing: it runs by itself, with the files that it names beside it."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath

from headrace.formats.drawing import Drawing, DrawnInput, DrawnTask, Value
from headrace.formats.function_source import FunctionSource

Known = Callable[[str], FunctionSource | None]
"""What the source of a function says, by its reference; None if there is none."""
_RESERVED = frozenset({"hr", "partial", "program", "sys", "Path", "print", "app", "App", "Unit"})


def drawing_python(drawing: Drawing, known: Known = lambda reference: None) -> str:
    """Python that builds the same program as the file and runs it: O(size of the drawing).

    >>> task = DrawnTask("a", "words.py:count", inputs=(("", "text"),), outputs=(("n", None),))
    >>> print(drawing_python(Drawing("w", (DrawnInput("text", "a.txt"),), (task,))))
    import headrace as hr
    from words import count
    <BLANKLINE>
    program = hr.Program('w')
    program.input('text', 'a.txt')
    program.task(count, name='a', kind='count', inputs=['text'], outputs=['n'])
    <BLANKLINE>
    if __name__ == "__main__":
        run = hr.run(program)
        print(run.results)
    <BLANKLINE>
    """
    if any(source.filter for task in drawing.tasks if (source := known(task.function)) is not None):
        return _pipeline(drawing)
    names = _imported(drawing)
    body = [f"program = hr.Program({drawing.name!r})"]
    body += [_input(given) for given in drawing.inputs]
    body += [_task(task, names, known) for task in drawing.tasks]
    body += [f"program.output({r.item!r}{_more(r.path)})" for r in drawing.results]
    body += ["", 'if __name__ == "__main__":', "    run = hr.run(program)", "    print(run.results)", ""]
    needs_partial = any("partial(" in line for line in body)
    return "\n".join([*_imports(drawing, names, needs_partial), "", *body])


def _pipeline(drawing: Drawing) -> str:
    """The application of drawn filters; values are the settings of its unit of work."""
    names = _imported(drawing)
    settings = {given.name: given.value for given in drawing.inputs if given.value is not None}
    units = f", units=[Unit('all', {settings!r})]" if settings else ""
    made = [f"app = App({drawing.name!r}{units})"]
    for task in drawing.tasks:
        given = "".join(f", {key}={value!r}" for key, value in task.set.items())
        name = names.get(task.function, "None")
        made.append(f"app.filter({task.name!r}, {f'partial({name}{given})' if given else name})")
    made += [f"app.stream({source!r}, {target!r})" for source, target in drawing.streams]
    made += ["", 'if __name__ == "__main__":', "    done = hr.stream(app)", "    print(done.results)", ""]
    imports = [*_imports(drawing, names, any(task.set for task in drawing.tasks))]
    at = imports.index("import headrace as hr")
    imports.insert(at + 1, f"from headrace.runtime.filters import App{', Unit' if settings else ''}")
    return "\n".join([*imports, "", *made])


def _more(path: str | None) -> str:
    return "" if path is None else f", {path!r}"


def _imported(drawing: Drawing) -> dict[str, str]:
    """The name of each function in the program; functions of the same name get a number."""
    taken = set(_RESERVED)
    names: dict[str, str] = {}
    for task in drawing.tasks:
        if task.function and task.function not in names:
            stem = task.function.rpartition(":")[2]
            name, number = stem, 2
            while name in taken:
                name, number = f"{stem}_{number}", number + 1
            taken.add(name)
            names[task.function] = name
    return names


def _imports(drawing: Drawing, names: dict[str, str], partial: bool) -> Iterator[str]:
    folders = {str(PurePosixPath(r.rpartition(":")[0]).parent) for r in names if ".py:" in r} - {"."}
    if folders:
        yield "import sys"
    if partial:
        yield "from functools import partial"
    if folders:
        yield "from pathlib import Path"
    if folders or partial:
        yield ""
    yield "import headrace as hr"
    for folder in sorted(folders):
        yield f"sys.path.insert(0, str(Path(__file__).parent / {folder!r}))"
    for reference, name in names.items():
        place, _, function = reference.rpartition(":")
        module = PurePosixPath(place).stem if place.endswith(".py") else place
        renamed = "" if name == function else f" as {name}"
        yield f"from {module} import {function}{renamed}"


def _input(given: DrawnInput) -> str:
    more = _more(given.path)
    more += "" if given.value is None else f", value={given.value!r}"
    more += "" if given.size is None else f", size={given.size!r}"
    return f"program.input({given.name!r}{more})"


def _task(task: DrawnTask, names: dict[str, str], known: Known) -> str:
    parts = [_body(task, names, known), f"name={task.name!r}"]
    if task.function:
        parts.append(f"kind={task.function.rpartition(':')[2]!r}")
    if task.inputs:
        parts.append(f"inputs={[item for _, item in task.inputs]!r}")
    if task.outputs:
        sized = any(size is not None for _, size in task.outputs)
        sizes = {name: 0.0 if size is None else size for name, size in task.outputs}
        parts.append(f"outputs={sizes if sized else list(sizes)!r}")
    if task.stdout is not None:
        parts.append(f"stdout={task.stdout!r}")
    if task.work != 1.0:
        parts.append(f"work={task.work!r}")
    if task.cores != 1:
        parts.append(f"cores={task.cores}")
    if task.after:
        parts.append(f"after={list(task.after)!r}")
    if task.group:
        parts.append(f"labels={ {'group': task.group}!r}")
    line = f"program.task({', '.join(parts)})"
    if len(line) <= 110:
        return line
    return "program.task(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def _body(task: DrawnTask, names: dict[str, str], known: Known) -> str:
    if task.command:
        return repr(list(task.command))
    if not task.function:
        return "None"
    name = names[task.function]
    given = "".join(f", {key}={value!r}" for key, value in task.set.items())
    source = known(task.function)
    connected = [parameter for parameter, _ in task.inputs]
    if not any(connected) or (source is not None and _in_order(source, connected)):
        return f"partial({name}{given})" if given else name
    return _lambda(name, connected, task.set, source)


def _in_order(source: FunctionSource, connected: list[str]) -> bool:
    """Whether the inputs are the first parameters, in order; `*name` takes all that follow."""
    several = [one.name for one in source.parameters if one.kind == "several"]
    expected = [one.name for one in source.parameters if one.kind == "positional"]
    head = [name for name in connected if name not in several]
    if head != connected[: len(head)] or head != expected[: len(head)]:
        return False
    return len(head) == len(connected) or len(head) == len(expected)


def _lambda(
    name: str, connected: list[str], values: Mapping[str, Value], source: FunctionSource | None
) -> str:
    """A call by name; what `*name` collects comes after all positional parameters."""
    kinds = {} if source is None else {one.name: one for one in source.parameters}
    arguments = _argument_names(connected)
    several = [
        a for a, n in zip(arguments, connected, strict=True) if n in kinds and kinds[n].kind == "several"
    ]
    given = {n: a for a, n in zip(arguments, connected, strict=True) if a not in several}
    given |= {key: repr(value) for key, value in values.items()}
    call = []
    if several and source is not None:
        for one in source.parameters:
            if one.kind == "positional":
                call.append(given.pop(one.name, one.default or "None"))
        call += several
    call += [f"{key}={value}" for key, value in given.items()]
    return f"lambda {', '.join(arguments)}: {name}({', '.join(call)})"


def _argument_names(connected: list[str]) -> list[str]:
    found: list[str] = []
    for number, name in enumerate(connected):
        stem = re.sub(r"\W", "_", name) or "x"
        stem = f"{stem}_" if keyword.iskeyword(stem) else stem
        found.append(stem if stem not in found else f"{stem}_{number}")
    return found
