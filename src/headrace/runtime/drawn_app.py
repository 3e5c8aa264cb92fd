"""The application of a drawn pipeline."""

from __future__ import annotations

import functools
from pathlib import Path

from headrace.formats.drawing_toml import read_drawing
from headrace.formats.function_reference import FunctionReference
from headrace.model.errors import BadProgram
from headrace.runtime.filters import App, Filter, Unit


def drawn_app(path: str | Path) -> App:
    """The application that a drawing describes: tasks are filters, values are the settings of its unit of work.

    This executes the files that the drawing names: use it only on files that you trust.

    Raises
    ------
    BadProgram
        If a task is no filter, or a filter is connected to something else.
    """
    path = Path(path)
    drawing = read_drawing(path)
    settings = {one.name: one.value for one in drawing.inputs if one.value is not None}
    app = App(drawing.name, units=[Unit("all", settings)] if settings else [Unit("all")])
    given = {one.name for one in drawing.inputs}
    for task in drawing.tasks:
        where = f"{path}: {task.name}"
        if not task.function:
            raise BadProgram("is not a filter", where=where, hint="a pipeline has filters only")
        if any(item in given for _, item in task.inputs):
            raise BadProgram(
                "is connected to an input of the drawing",
                where=where,
                hint="connect filters; values are settings of the unit of work",
            )
        made = FunctionReference(task.function, str(path.parent)).function()
        if not (isinstance(made, type) and issubclass(made, Filter)):
            raise BadProgram(
                f"{task.function} is not a filter", where=where, hint="see docs/guide-streams.md"
            )
        app.filter(task.name, functools.partial(made, **task.set) if task.set else made)
    for source, target in drawing.streams:
        app.stream(source, target)
    return app
