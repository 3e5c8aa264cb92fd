"""Generated parameter sweeps for campaigns: file sharing, sizes, run times, and estimation errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np

from headrace.experiment.distribution import Distribution, constant, uniform
from headrace.model.errors import UsageError
from headrace.model.graph import Floats
from headrace.model.program import Program

Pattern: TypeAlias = Literal["none", "all-to-one", "chunks", "random", "pairwise", "window"]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)
_SHARED, _SMALL, _TIME = constant(1.2e6), uniform(8e3, 12e3), uniform(90.0, 110.0)
"""The sizes and times of figure 11 of the parameter-sweep paper."""
_ESTIMATES, _REALITY = 31, 32
"""Random streams: drawing real values does not change the estimates."""


@dataclass(frozen=True)
class SweepSpec:
    """A sweep to be generated: independent tasks with shared and private inputs and outputs.

    `pattern` determines which of the `files` shared files each task reads:
    - none: no file; all-to-one: all tasks read one file (`files` is 1);
    - chunks: tasks form as many equal groups as there are files, each with its own file;
    - random: `reads` different files, drawn for each task;
    - pairwise: two files, cycling through all pairs;
    - window: `reads` consecutive files; the window moves with the task and wraps around.
    """

    tasks: int = 400
    pattern: Pattern = "chunks"
    files: int = 8
    reads: int = 2
    shared: Distribution = _SHARED
    """Size of a shared file in bytes."""
    private: int = 2
    """Private inputs of each task."""
    private_size: Distribution = _SMALL
    outputs: int = 1
    output_size: Distribution = _SMALL
    time: Distribution = _TIME
    """Seconds of a task on a host of speed 1."""
    perturb: float = 0.0
    """Share of the tasks whose shared files are drawn at random instead of following the pattern."""
    shuffle: bool = False
    """Shuffle the order of tasks."""
    time_error: Distribution | None = None
    """Real times are estimates times a factor drawn from this; None: estimates are exact."""
    size_error: Distribution | None = None
    """The same for sizes of outputs."""
    ccr: float | None = None
    """Scale all sizes so that the total work is this many times the time to transfer every file once
    over a link of `bandwidth`."""
    bandwidth: float = 1e4
    architectures: int = 1
    affinity: float = 0.0
    """With several architectures, a task's time on each is multiplied by a factor from 1 - affinity to 1 + affinity."""

    def __post_init__(self) -> None:
        _check(self)


def generate_sweep(spec: SweepSpec, seed: int, name: str = "sweep") -> Program:
    """A program according to the specification: O(tasks * inputs). The same seed gives the same program.

    >>> program = generate_sweep(SweepSpec(tasks=6, files=2, private=1), seed=0)
    >>> [task.inputs for task in program.tasks.values()][::3]
    [('shared0', 'in0.0'), ('shared1', 'in3.0')]
    """
    rng = np.random.default_rng([seed, _ESTIMATES])
    reads = _reads(spec, rng)
    time = spec.time.draw(rng, spec.tasks)
    shared = spec.shared.draw(rng, _file_count(spec))
    private = spec.private_size.draw(rng, spec.tasks * spec.private).reshape(spec.tasks, spec.private)
    outputs = spec.output_size.draw(rng, spec.tasks * spec.outputs).reshape(spec.tasks, spec.outputs)
    if spec.ccr is not None:
        total = float(shared.sum() + private.sum() + outputs.sum())
        factor = float(time.sum()) * spec.bandwidth / spec.ccr / total if total > 0 else 1.0
        shared, private, outputs = shared * factor, private * factor, outputs * factor
    times = _times(spec, time, rng)
    program = Program(name)
    files = [program.input(f"shared{i}", size=float(size)).name for i, size in enumerate(shared)]
    for t in range(spec.tasks):
        own = [program.input(f"in{t}.{i}", size=float(private[t, i])).name for i in range(spec.private)]
        program.task(
            name=f"t{t}",
            inputs=[*(files[f] for f in reads[t]), *own],
            outputs={f"out{t}.{i}": float(outputs[t, i]) for i in range(spec.outputs)},
            work=times[t].tolist() if spec.architectures > 1 else float(times[t, 0]),
        )
    _set_reality(program, spec, seed)
    return program


def _times(spec: SweepSpec, time: Floats, rng: np.random.Generator) -> Floats:
    """Seconds of each task on each architecture."""
    if spec.architectures == 1:
        return time[:, None]
    factor = rng.uniform(1 - spec.affinity, 1 + spec.affinity, (spec.tasks, spec.architectures))
    return np.asarray(time[:, None] * factor)


def _set_reality(program: Program, spec: SweepSpec, seed: int) -> None:
    """Real times and output sizes, where they differ from the estimates."""
    if spec.time_error is None and spec.size_error is None:
        return
    rng = np.random.default_rng([seed, _REALITY])
    graph = program.graph
    work, size = graph.work, graph.size
    if spec.time_error is not None:
        work = work * spec.time_error.draw(rng, graph.n_tasks)
    if spec.size_error is not None:
        made = graph.producer >= 0
        size = size.copy()
        size[made] *= spec.size_error.draw(rng, int(made.sum()))
    program.reality = replace(graph, work=np.asarray(work), size=np.asarray(size))


def _file_count(spec: SweepSpec) -> int:
    return {"none": 0, "all-to-one": 1}.get(spec.pattern, spec.files)


def _reads(spec: SweepSpec, rng: np.random.Generator) -> list[list[int]]:
    """The shared files that each task reads."""
    rule = _RULES[spec.pattern]
    reads = [rule(spec, t, rng) for t in range(spec.tasks)]
    if spec.shuffle:
        reads = [reads[t] for t in rng.permutation(spec.tasks).tolist()]
    count = _file_count(spec)
    for t in np.flatnonzero(rng.random(spec.tasks) < spec.perturb).tolist() if count else []:
        reads[t] = sorted(rng.choice(count, size=len(reads[t]), replace=False).tolist())
    return reads


def _chunks(spec: SweepSpec, task: int, rng: np.random.Generator) -> list[int]:
    return [task * spec.files // spec.tasks]


def _random(spec: SweepSpec, task: int, rng: np.random.Generator) -> list[int]:
    return sorted(rng.choice(spec.files, size=spec.reads, replace=False).tolist())


def _pairwise(spec: SweepSpec, task: int, rng: np.random.Generator) -> list[int]:
    """Pair number `task` of (0, 1), (0, 2), (1, 2), (0, 3), ..., cycling when all pairs are used."""
    number = task % (spec.files * (spec.files - 1) // 2)
    second = int((1 + np.sqrt(1 + 8 * number)) / 2)
    second -= second * (second - 1) // 2 > number
    return [number - second * (second - 1) // 2, second]


def _window(spec: SweepSpec, task: int, rng: np.random.Generator) -> list[int]:
    first = task * spec.files // spec.tasks
    return sorted((first + k) % spec.files for k in range(spec.reads))


_RULES: dict[Pattern, Callable[[SweepSpec, int, np.random.Generator], list[int]]] = {
    "none": lambda spec, task, rng: [],
    "all-to-one": lambda spec, task, rng: [0],
    "chunks": _chunks,
    "random": _random,
    "pairwise": _pairwise,
    "window": _window,
}


def _check(spec: SweepSpec) -> None:
    def wrong(problem: str, hint: str) -> UsageError:
        return UsageError(problem, where="sweep", hint=hint)

    if spec.pattern not in PATTERNS:
        raise wrong(f"pattern is {spec.pattern!r}", f"use one of {', '.join(PATTERNS)}")
    for what, number, least in (
        ("tasks", spec.tasks, 1),
        ("files", spec.files, 1),
        ("reads", spec.reads, 1),
        ("private", spec.private, 0),
        ("outputs", spec.outputs, 0),
        ("architectures", spec.architectures, 1),
    ):
        if number < least:
            raise wrong(f"{what} is {number}", f"give {least} or more")
    if spec.pattern in ("random", "window") and spec.reads > spec.files:
        raise wrong(f"reads is {spec.reads} of {spec.files} files", "give at most as many as there are files")
    if spec.pattern == "pairwise" and spec.files < 2:
        raise wrong(f"pairs of {spec.files} file", "give 2 files or more")
    for what, share in (("perturb", spec.perturb), ("affinity", spec.affinity)):
        if not 0 <= share <= 1 or (what == "affinity" and share == 1):
            raise wrong(f"{what} is {share}", "give a share from 0 to 1")
    if spec.ccr is not None and not (spec.ccr > 0 and spec.bandwidth > 0):
        raise wrong(f"ccr is {spec.ccr}, bandwidth {spec.bandwidth}", "give numbers above 0")
