"""What Python callers give: programs, platforms and plans as objects, or as files, as the command takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.model.arguments import as_float, as_whole, short, wrong_argument
from headrace.model.errors import BadFile, BadProgram, UsageError
from headrace.model.graph import Graph
from headrace.model.keyword_call import require_call
from headrace.model.platform import Platform
from headrace.model.program import Command, Program

if TYPE_CHECKING:
    from headrace.core.scheduler import Planner, Scheduler
    from headrace.formats.platform_ini import Machines
    from headrace.model.behaviour import GridScript
    from headrace.model.pipeline import Pipeline
    from headrace.model.plan import Plan
    from headrace.rules.tree import RuleSet
    from headrace.runtime.filters import App


def as_program(given: Any, *, commands: bool = False) -> Program | Graph:
    """A program or graph as it is; a text or path is a file, or `file.py:name`.

    With `commands`, tasks of a WfFormat file execute the commands that the file has.

    >>> as_program(5)
    Traceback (most recent call last):
        ...
    headrace.model.errors.UsageError: the program is 5, an int (try: give a Program, or the name of a file)
    """
    if isinstance(given, Program | Graph):
        return given
    if isinstance(given, str | Path):
        from headrace.formats.loading import load_program

        return load_program(given, commands=commands)
    hint = "give a Program, or the name of a file"
    if type(given).__module__.split(".")[0] == "networkx":
        hint = "use Program.from_networkx"
    elif type(given).__module__.split(".")[0] == "dask":
        hint = "use Program.from_dask"
    elif isinstance(given, Platform):
        hint = "the program comes first, then the platform"
    raise wrong_argument("program", given, hint)


def as_platform(given: Any) -> Platform:
    """A platform as it is; a text or path is a file, or `local`. A grid is taken at time 0."""
    from headrace.model.behaviour import GridScript

    found = as_grid(given)
    return found.start() if isinstance(found, GridScript) else found


def as_grid(given: Any) -> Platform | GridScript:
    """A platform or grid as it is; a text or path is a file, or `local`."""
    from headrace.model.behaviour import GridScript

    if isinstance(given, Platform | GridScript):
        return given
    if isinstance(given, str | Path):
        from headrace.formats.loading import load_grid

        return load_grid(given)
    hint = "the program comes first, then the platform" if isinstance(given, Program | Graph) else ""
    raise wrong_argument("platform", given, hint or "give a Platform, the name of a file, or 'local'")


def as_pipeline(given: Any) -> Pipeline:
    """A pipeline as it is; a text or path is its file."""
    from headrace.model.pipeline import Pipeline

    if isinstance(given, Pipeline):
        return given
    if isinstance(given, str | Path):
        from headrace.formats.loading import load_pipeline

        return load_pipeline(given)
    raise wrong_argument("pipeline", given, "give a Pipeline, or the name of its file")


def as_machines(given: Any) -> Machines:
    """A platform for pipelines; of a file, with the clusters that it marks as a shared medium."""
    from headrace.formats.platform_ini import Machines

    if isinstance(given, str | Path):
        from headrace.formats.loading import load_machines

        return load_machines(given)
    if type(given).__name__ == "Pipeline":
        raise wrong_argument("platform", given, "the pipeline comes first, then the platform")
    return Machines(as_platform(given))


def as_app(given: Any) -> App:
    """A pipeline application as it is; a text or path is a drawing or `file.py:name`, where the name defaults to `app`.

    This executes the file, or those that the drawing names: use it only on files that you trust.
    """
    from headrace.runtime.filters import App

    if isinstance(given, App):
        return given
    if not isinstance(given, str | Path):
        raise wrong_argument("application", given, "give an App, or file.py:name")
    path, _, name = str(given).partition(":")
    if path.endswith(".toml"):
        from headrace.runtime.drawn_app import drawn_app

        return drawn_app(path)
    if not path.endswith(".py"):
        raise UsageError(
            f"{str(given)!r} is not a Python file", hint="give file.py:name, such as pipe.py:app"
        )
    from headrace.formats.python_program import load_from_file

    name = name or "app"
    found = load_from_file(f"{path}:{name}", lambda value: isinstance(value, App))
    app = found() if callable(found) and not isinstance(found, App) else found
    if not isinstance(app, App):
        raise BadProgram(
            f"{name!r} is of type {type(app).__name__}, not an App",
            where=path,
            hint="name a headrace.runtime.filters.App",
        )
    return app


def as_plan(given: Any, program: Program | Graph, platform: Platform) -> Plan:
    """A plan as it is; a text or path is the file of a plan for this program and platform."""
    if isinstance(given, str | Path):
        from headrace.formats.plan_json import read_plan

        try:
            return read_plan(given, program.graph if isinstance(program, Program) else program, platform)
        except BadFile:
            _require_kind_plan(given, "give a plan file")  # says more about a file of something else
            raise
    return require_plan(given, "give a Plan, or the name of its file")


def _require_kind_plan(path: str | Path, hint: str) -> None:
    from headrace.formats.registry import detect

    if str(path).lower().endswith((".csv", ".parquet")):
        raise BadFile(
            "plans are read from JSON files only", where=str(path), hint="write the plan as .json as well"
        )
    kind = detect(path).kind
    if kind != "plan":
        raise BadFile(f"is a {kind}, not a plan", where=str(path), hint=hint)


def load_plan(
    path: str | Path,
    program: Any = None,
    platform: Any = None,
    *,
    hint: str = "give the program and the platform that it was made for",
) -> Plan:
    """The plan of a file, for this program and platform; None: those whose files the plan names.

    A Python file is executed only if it is given here.
    """
    from headrace.formats.plan_json import files_of_plan
    from headrace.formats.python_program import is_python_program

    try:
        named_program, named_platform = files_of_plan(path)
    except BadFile:
        _require_kind_plan(path, "the plan comes first, then its program and its platform")
        raise
    if program is None and named_program is not None and not is_python_program(named_program):
        program = named_program
    platform = named_platform if platform is None else platform
    if program is None or platform is None:
        raise UsageError("a plan is read together with its program and platform", where=str(path), hint=hint)
    place = as_platform(platform)
    return as_plan(path, as_program(program), place)


def require_plan(given: Any, hint: str) -> Plan:
    """A plan as it is; nothing else will do."""
    from headrace.model.plan import Plan

    if not isinstance(given, Plan):
        raise wrong_argument("plan", given, hint)
    return given


def as_scheduler(given: Any, options: Mapping[str, Any]) -> str | Planner | Scheduler:
    """The name of a scheduler whose options make sense, or an object that is one.

    >>> as_scheduler("best", {"time": "x"})
    Traceback (most recent call last):
        ...
    headrace.model.errors.UsageError: the option time of 'best' is 'x', a str (try: give a number, such as 10.0)
    """
    if isinstance(given, str):
        _require_numbers(given, options)
        return given
    if isinstance(given, type):
        raise wrong_argument("scheduler", given, f"make an object: {given.__name__}()")
    if not any(callable(getattr(given, method, None)) for method in ("plan", "react")):
        hint = "give a name that `headrace schedulers` lists, or an object with plan(problem) or react(view, events)"
        raise wrong_argument("scheduler", given, hint)
    if not isinstance(getattr(given, "name", None), str):
        raise UsageError(
            f"the scheduler {short(given)} has no name", hint="set its attribute `name` to a text"
        )
    found: Planner | Scheduler = given
    return found


def _require_numbers(scheduler: str, options: Mapping[str, Any]) -> None:
    """Raise an error if an option of one of Headrace's own schedulers is not the number that it has to be."""
    if not options:
        return
    from headrace.planners.registry import ENTRIES, registered_name

    name = registered_name(scheduler)
    for entry in ENTRIES:
        if entry.name == name:
            known = signature(getattr(import_module(entry.module), entry.maker)).parameters
            for option in options.keys() & known.keys():
                _require_number(known[option], options[option], name)


def _require_number(option: Parameter, given: Any, scheduler: str) -> None:
    kinds = str(option.annotation).split(" | ")
    if given is None and "None" in kinds:
        return
    example = "" if option.default is None else f", such as {option.default}"
    for kind, read, wanted in (("float", as_float, "a number"), ("int", as_whole, "a whole number")):
        if kind in kinds and read(given) is None:
            raise wrong_argument(f"option {option.name} of {scheduler!r}", given, f"give {wanted}{example}")


def require_options(scheduler: str | Planner | Scheduler, options: Mapping[str, Any]) -> None:
    """Raise an error if options of `simulate` are settings of the simulation, and not of the scheduler.

    >>> require_options("heft", {"faults": "kill=1@30%"})
    Traceback (most recent call last):
        ...
    headrace.model.errors.UsageError: 'faults' is a setting of the simulation, and 'heft' does not accept it (try: \
pass config=hr.SimulationConfig(faults=...))
    """
    from dataclasses import fields

    from headrace.core.execution_policy import ExecutionPolicy
    from headrace.core.replan_policy import ReplanPolicy
    from headrace.planners.registry import options_taken
    from headrace.simulator.events.config import SimulationConfig

    if not options:
        return
    homes = {each.name: f"policy=hr.ReplanPolicy({each.name}=...)" for each in fields(ReplanPolicy)}
    homes |= {each.name: f"execution=hr.ExecutionPolicy({each.name}=...)" for each in fields(ExecutionPolicy)}
    homes |= {each.name: f"{each.name}=..." for each in fields(SimulationConfig)}
    taken = options_taken(scheduler) if isinstance(scheduler, str) else ()
    wrong = [name for name in options if name in homes and name not in taken]
    if wrong:
        shown = repr(scheduler) if isinstance(scheduler, str) else scheduler.name
        raise UsageError(
            f"{wrong[0]!r} is a setting of the simulation, and {shown} does not accept it",
            hint=f"pass config=hr.SimulationConfig({', '.join(homes[name] for name in wrong)})",
        )


def as_rule_set(given: Any) -> RuleSet | None:
    """Rules as `as_rules` takes them. None if there are none, so that plans without rules need no parser."""
    if given is None:
        return None
    from headrace.rules.given import as_rules
    from headrace.rules.tree import RuleSet

    if not isinstance(given, RuleSet | str | Path):
        texts = list(given) if isinstance(given, Iterable) and not isinstance(given, Mapping) else [given]
        if not all(isinstance(text, str) for text in texts):
            raise wrong_argument(
                "argument rules", given, "give a text of rules, the name of a file, or a list of texts"
            )
        given = texts
    found = as_rules(given)
    return found if len(found) else None


def require_config(given: Any) -> None:
    """Raise an error unless these are settings of a simulation, or None."""
    from headrace.simulator.events.config import SimulationConfig

    if given is None:
        return
    if not isinstance(given, SimulationConfig):
        raise wrong_argument("config", given, "give a SimulationConfig, or leave it out")
    faults: object = given.faults
    if not isinstance(faults, str):
        raise wrong_argument("argument config.faults", faults, 'give a text, such as "kill=1@50%"')


def require_bodies(program: Program, spec: str | Path | None, *, allow: str, emulate: str) -> None:
    """Raise an error if a task has nothing to execute; `allow` and `emulate` are what to write to change that."""
    bare = next((t.name for t in program.tasks.values() if t.body is None), None)
    if bare is None:
        return
    from headrace.formats.loading import executable_commands

    if spec and executable_commands(spec):
        raise UsageError(
            f"the commands of this file are not executed unless you allow it, such as that of task {bare!r}",
            where=program.name,
            hint=f"{allow} if you trust the file, or {emulate} to run emulated tasks",
        )
    raise UsageError(
        f"task {bare!r} has nothing to execute",
        where=program.name,
        hint=f"{emulate} to run emulated tasks, or give it a function or a command",
    )


def require_arguments(program: Program) -> None:
    """Raise an error if a function lacks an argument, before anything is started. O(tasks)."""
    seen = set()
    for task in program.tasks.values():
        if task.body is None or isinstance(task.body, Command):
            continue
        call = id(task.body), len(task.inputs)
        if call not in seen:  # many tasks call one function alike
            seen.add(call)
            require_call(task.body, len(task.inputs), f"{program.name}: task {task.name!r}")
