"""Why a task ran, is reused, or must run again: the identity of now beside that of the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.model.errors import HeadraceError, UsageError
from headrace.record import Record
from headrace.record.code_parts import Code, Part
from headrace.record.code_source import changed_line
from headrace.record.reuse import Noted, code_parts, find_kept, noted_of_run, noted_tasks
from headrace.record.task_identity import TaskFacts, item_identity

if TYPE_CHECKING:
    from headrace.record.store import Record as Book

MOST_EXPLAINED = 20
_DEEPEST = 30
_WORDS = {
    "global": "global value",
    "captured": "captured value",
    "default": "default",
    "argument": "argument",
    "module": "module",
    "command": "command",
}


@dataclass(frozen=True)
class Answer:
    """Why a task is as it is."""

    task: str
    status: str
    """`kept`: it need not run; `must run`."""
    reasons: tuple[str, ...] = ()
    """Why it must run."""
    ran: dict[str, Any] = field(default_factory=dict)
    """When, where and how long it ran last: run, host, seconds, finished."""
    where: tuple[str, ...] = ()
    """Where the bytes of its outputs are."""

    def facts(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "status": self.status,
            "reasons": list(self.reasons),
            "ran": self.ran,
            "where": list(self.where),
        }


@dataclass(frozen=True, eq=False)
class Now:
    """The tasks as they would be executed now."""

    facts: Mapping[str, TaskFacts]
    codes: Mapping[str, Code]
    outputs: Mapping[str, int]
    """How many items each task makes."""
    producers: Mapping[str, str]
    """The task of each identity of an item."""


def why(target: str, task: str, *, record: str | Path | None = None) -> list[Answer]:
    """Explain tasks of an experiment or of a run.

    Parameters
    ----------
    target
        The name of an experiment, or the id of a run, or `last`.
    task
        The task's name, or `NAME@LABEL,LABEL`: its name or one of its labels, and labels that it must have.
    record
        As for `headrace.run`.
    """
    from headrace.record.experiments import experiments, latest

    with Record.open(record) as book:
        known = experiments(book, target)
        if known:
            row = latest(book, target)
            now = _experiment_now(row.file)
            earlier = [e.id for e in known]
        else:
            run = book.run(target).id
            now = _run_now(book, run)
            earlier = []
        then = _recorded(book, target, earlier) if earlier else _of_run(book, book.run(target).id)
        chosen = _matching(task, now.facts if now is not None else {n: f.facts for n, f in then.items()})
        return [_explain(book, name, now, then) for name in chosen]


def _experiment_now(file: str) -> Now | None:
    from headrace.experiment.sweep.merge import merge
    from headrace.experiment.sweep.merged_program import merged_program
    from headrace.experiment.sweep.substitute import bind
    from headrace.formats.experiment_toml import read_experiment

    if not Path(file).exists():
        return None
    merged = merge(bind(read_experiment(file)))
    built = merged_program(merged)
    made = {name: len(built.program.tasks[name].outputs) for name in built.facts}
    return Now(built.facts, merged.known.codes, made, _producers(built.facts.values(), made))


def _producers(facts: Iterable[TaskFacts], outputs: Mapping[str, int]) -> dict[str, str]:
    return {item_identity(f.identity, k): f.task for f in facts for k in range(outputs[f.task])}


def _run_now(book: Book, run: str) -> Now | None:
    from headrace.record.launch import Launch
    from headrace.record.task_identity import program_identities

    launch = Launch.parse(book.launch(run))
    if "experiment" in launch.settings:
        return _experiment_now(str(launch.settings["experiment"]))
    try:
        program = launch.load()
    except HeadraceError:
        return None  # built by a script, or its file is gone
    found = program_identities(program, Path(launch.folder))
    made = {name: len(task.outputs) for name, task in program.tasks.items()}
    return Now(found.tasks, found.codes, made, _producers(found.tasks.values(), made))


def _recorded(book: Book, name: str, numbers: list[int]) -> dict[str, Noted]:
    """Each task of an experiment as it was recorded last."""
    marks = ",".join("?" * len(numbers))
    rows = book.database.rows(
        f"SELECT task, identity FROM experiment_tasks WHERE experiment IN ({marks}) ORDER BY experiment",
        numbers,
    )
    found: dict[str, Noted] = {}
    for task, identity in dict(rows).items():
        noted = noted_tasks(book, identity)
        if noted:
            found[task] = replace(noted[0], facts=replace(noted[0].facts, task=task))
    return found


def _of_run(book: Book, run: str) -> dict[str, Noted]:
    found = {noted.facts.task: noted for noted in noted_of_run(book, run)}
    if not found:
        raise UsageError(
            f"there are no details of the tasks of run {run}",
            hint="it was recorded by an older version of Headrace, or it is large",
        )
    return found


def _matching(pattern: str, facts: Mapping[str, TaskFacts]) -> list[str]:
    """Tasks of this name, or with these labels."""
    if pattern in facts:
        return [pattern]
    head, _, rest = pattern.partition("@")
    wanted = [part for part in rest.split(",") if part]
    found = []
    for name, of in facts.items():
        labels = {str(v) for v in of.labels.values()} | {f"{k}={v}" for k, v in of.labels.items()}
        if (head == of.base or head in labels) and all(part in labels for part in wanted):
            found.append(name)
    if not found:
        raise UsageError(
            f"there is no task {pattern[:80]!r}",
            hint=f"one of {', '.join(repr(n) for n in list(facts)[:5])}, ...",
        )
    if head not in {facts[name].base for name in found}:  # a label: the task that it was given to
        own = [n for n in found if str(facts[n].labels.get(facts[n].base)) == head]
        found = own or found
    return found[:MOST_EXPLAINED]


def _explain(book: Book, task: str, now: Now | None, then: Mapping[str, Noted]) -> Answer:
    if now is None:
        noted = then[task]
        return _kept_answer(book, task, noted.facts.identity, 1) or Answer(
            task, "must run", ("what it made is not kept, and its program cannot be read any more",)
        )
    facts = now.facts[task]
    kept = _kept_answer(book, task, facts.identity, now.outputs[task])
    if kept is not None:
        return kept
    return Answer(
        task, "must run", tuple(dict.fromkeys(_reasons(book, task, now, then, 0))), _ran(book, facts.identity)
    )


def _kept_answer(book: Book, task: str, identity: str, outputs: int) -> Answer | None:
    """If all that a task makes is kept and intact."""
    items = [item_identity(identity, k) for k in range(outputs)]
    found = find_kept(book, items)
    places = []
    for item in items:
        for kept in found.get(item, ()):
            folder = book.kept_folder(kept.run)
            if not folder.problem(replace(kept, run="")):
                where = str(folder.folder / kept.file) if kept.file else f"{book.database.path} (table kept)"
                places.append(f"{kept.item}: {where}")
                break
        else:
            return None
    return Answer(task, "kept", (), _ran(book, identity), tuple(places))


def _ran(book: Book, identity: str) -> dict[str, Any]:
    """The latest execution of a task with this identity."""
    rows = book.database.rows(
        "SELECT i.run, t.host, t.finish - t.start, r.started + t.finish FROM task_identities i"
        " JOIN tasks t ON t.run = i.run AND t.task = i.task JOIN runs r ON r.id = i.run"
        " WHERE i.identity = ? AND t.status = 'done' ORDER BY t.seq DESC LIMIT 1",
        (identity,),
    )
    return {} if not rows else dict(zip(("run", "host", "seconds", "finished"), rows[0], strict=True))


def _reasons(book: Book, task: str, now: Now, then: Mapping[str, Noted], depth: int) -> list[str]:
    """Why a task must run: what has changed, or what is missing or damaged."""
    facts = now.facts[task]
    same = noted_tasks(book, facts.identity)
    if same:
        return _missing(book, facts, now.outputs[task])
    before = then[task].facts if task in then else _nearest(facts, then)
    if before is None:
        return [f"{task} has never run"]
    changes = _differences(book, before, facts, now)
    for item, identity in facts.inputs.items():
        if before.inputs.get(item) != identity:
            changes += _input_reasons(book, item, identity, now, then, depth)
    near = [] if before.task == task else [f"{task} has never run; compared with {before.task}"]
    return near + changes or [f"{task} has never run"]


def _missing(book: Book, facts: TaskFacts, outputs: int) -> list[str]:
    """The same task was noted before: what has become of its outputs."""
    found = find_kept(book, [item_identity(facts.identity, k) for k in range(outputs)])
    if not found:
        ran = _ran(book, facts.identity)
        if ran:
            return [f"what {facts.task} made in run {ran['run']} is not kept any more"]
        return [f"{facts.task} was started before, and did not finish"]
    problems = []
    for kept in (each for candidates in found.values() for each in candidates):
        problem = book.kept_folder(kept.run).problem(replace(kept, run=""))
        if problem:
            problems.append(f"result {kept.item!r} of run {kept.run}: {problem}")
    return problems or [f"some outputs of {facts.task} are not kept any more"]


def _nearest(facts: TaskFacts, then: Mapping[str, Noted]) -> TaskFacts | None:
    """The earlier instance of the same task that differs in the fewest labels."""
    candidates = [noted.facts for noted in then.values() if noted.facts.base == facts.base]

    def distance(other: TaskFacts) -> tuple[int, int, float, str]:
        keys = facts.labels.keys() | other.labels.keys()
        differing = [k for k in sorted(keys) if facts.labels.get(k) != other.labels.get(k)]
        numbers = [(facts.labels.get(k), other.labels.get(k)) for k in differing]
        gap = sum(abs(a - b) for a, b in numbers if isinstance(a, int | float) and isinstance(b, int | float))
        return len(differing), int(other.code != facts.code), gap, other.task

    return min(candidates, key=distance, default=None)


def _input_reasons(
    book: Book, item: str, identity: str, now: Now, then: Mapping[str, Noted], depth: int
) -> list[str]:
    maker = now.producers.get(identity)
    if maker is None:
        return [f"the contents of input {item!r} changed"]
    if depth >= _DEEPEST:
        return [f"input {item!r} is made by {maker}, which must run again"]
    inner = [
        reason for reason in _reasons(book, maker, now, then, depth + 1) if "has never run" not in reason
    ] if maker in then else []  # fmt: skip
    return [f"input {item!r} comes from {maker}: {reason}" if depth == 0 else reason for reason in inner] or [
        f"input {item!r} comes from {maker}, another task than before"
    ]


def _differences(book: Book, before: TaskFacts, facts: TaskFacts, now: Now) -> list[str]:
    """What differs in the task itself."""
    found: list[str] = []
    if before.code != facts.code:
        new = now.codes[facts.code].parts if facts.code in now.codes else ()
        found += _code_changes(code_parts(book, before.code), new)
        found = found or ["its code changed"]
    found += _changed("parameter ", before.parameters, facts.parameters)
    return found + _changed("", before.declared, facts.declared)


def _changed(what: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """
    >>> _changed("parameter ", {"sigma": "0.5"}, {"sigma": "1.0"})
    ['parameter sigma is 1.0, and was 0.5']
    """
    return [
        f"{what}{name} is {after.get(name, 'not given')}, and was {before.get(name, 'not given')}"
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]


def _code_changes(before: tuple[Part, ...], after: tuple[Part, ...]) -> list[str]:
    old, new = {(p.kind, p.name): p for p in before}, {(p.kind, p.name): p for p in after}
    found = []
    for key in dict.fromkeys((*new, *old)):
        was, is_ = old.get(key), new.get(key)
        if was is not None and is_ is not None and was.digest == is_.digest:
            continue
        found.append(_part_change(key, was, is_))
    return found


def _part_change(key: tuple[str, str], was: Part | None, is_: Part | None) -> str:
    kind, name = key
    called = f"code of {name}" if kind == "code" else f"{_WORDS.get(kind, kind)} {name}"
    if is_ is None or was is None:
        return f"{called} is {'not used any more' if is_ is None else 'used now, and was not'}"
    if kind not in ("code", "module"):
        return f"{called} is {is_.detail}, and was {was.detail}"
    change = changed_line(was.detail, is_.detail)
    if change is None:
        return f"{called} changed"
    file, _, first = is_.place.rpartition(":")
    line = change.line + int(first or 1) - 1 if kind == "code" else change.line
    lines = f"{change.before or '(nothing)'} -> {change.after or '(nothing)'}"
    return f"{called} changed: {Path(file).name}, line {line}: {lines}"
