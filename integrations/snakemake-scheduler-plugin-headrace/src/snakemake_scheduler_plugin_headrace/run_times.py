"""Run times of jobs: from their benchmark files, the record, other jobs of the rule, or the resource `runtime`."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from headrace.model.errors import HeadraceError

if TYPE_CHECKING:
    from .placement import Placing

_PREFIX = "snakemake:"
_GUESS = 60.0
"""Seconds of a job when nothing is known of any."""
_LARGEST = 1_000_000
"""Bytes of a benchmark file that is read."""


def members(job: Any) -> list[Any]:
    """The single jobs of a group, or the job itself."""
    jobs = getattr(job, "jobs", None)
    if jobs is None:
        return [job]
    return list(jobs() if callable(jobs) else jobs)


def rule_of(job: Any) -> str:
    return str(getattr(job, "name", type(job).__name__))


def work_of(job: Any, times: RunTimes) -> float:
    """Seconds of a job on a host of speed 1; those of a group run one after another."""
    return sum(times.work(single) for single in members(job))


class RunTimes:
    """Estimates, kept in Headrace's record between runs. A record that cannot be used is left alone."""

    def __init__(self, folder: str | None) -> None:
        self.folder = None if folder is None else Path(folder)
        self.known: dict[tuple[str, str], float] = {}
        self.of_rule: dict[str, list[float]] = {}
        self.benchmarks: dict[str, float | None] = {}
        self.problem = ""
        """Why the record cannot be used."""
        with self._noted():
            self._load()

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except (HeadraceError, OSError) as error:
            self.problem = self.problem or str(error)

    def _load(self) -> None:
        from headrace.record import Record
        from headrace.record.steering_rows import steered_rows

        with Record.open(self.folder) as book:
            for prefix, part, work, _ in steered_rows(book):
                if prefix.startswith(_PREFIX):
                    self._add(prefix.removeprefix(_PREFIX), part, work)

    def _add(self, rule: str, part: str, work: float) -> None:
        self.known[rule, part] = work
        self.of_rule.setdefault(rule, []).append(work)

    def work(self, job: Any) -> float:
        """Seconds on a host of speed 1."""
        rule = rule_of(job)
        same = self.known.get((rule, _part(job)))
        if same is not None:
            return same
        measured = self._benchmark(job)
        if measured is not None:
            return measured
        others = self.of_rule.get(rule)
        if others:
            return median(others)
        minutes = job.scheduler_resources.get("runtime")
        if isinstance(minutes, int | float) and minutes > 0:
            return float(minutes) * 60.0
        return median(median(of) for of in self.of_rule.values()) if self.of_rule else _GUESS

    def _benchmark(self, job: Any) -> float | None:
        file = getattr(job, "benchmark", None)
        if not file:
            return None
        if str(file) not in self.benchmarks:
            self.benchmarks[str(file)] = read_benchmark(Path(str(file)))
        return self.benchmarks[str(file)]

    def note(self, job: Any, placing: Placing, speed: float, now: float) -> None:
        """Learn from a job that has ended. When it ended is the time of its newest output file."""
        singles = members(job)
        if len(singles) > 1:
            return
        ended = [end for end in _written(job.output) if placing.started <= end <= now]
        work = max(0.0, (max(ended) if ended else now) - placing.started) * speed
        self._add(rule_of(job), _part(job), work)
        with self._noted():
            self._save(job, work)

    def _save(self, job: Any, work: float) -> None:
        from headrace.record import Record
        from headrace.record.steering_rows import save_steered

        with Record.open(self.folder) as book:
            save_steered(book, [(_PREFIX + rule_of(job), _part(job), work, 0.0)])


def _part(job: Any) -> str:
    """What tells jobs of a rule apart: their first output."""
    return next((str(file) for file in job.output), "")


def _written(files: Iterable[Any]) -> list[float]:
    times = []
    for file in files:
        with suppress(OSError):
            times.append(Path(str(file)).stat().st_mtime)
    return times


def read_benchmark(path: Path) -> float | None:
    """Mean seconds of a benchmark file of Snakemake; None if there is none, or it is not one."""
    try:
        if path.stat().st_size > _LARGEST:
            return None
        with path.open(encoding="utf-8", newline="") as file:
            rows = [float(row["s"]) for row in csv.DictReader(file, delimiter="\t")]
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        return None
    good = [seconds for seconds in rows if 0 <= seconds < 1e9]
    return fmean(good) if good else None
