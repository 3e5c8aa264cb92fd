"""The paper's statements on scalability, joining and failure, compared with runs on real workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace.reproductions import Claim
from headrace.reproductions.contributors import judged
from headrace.reproductions.real_workers import Course

LIMIT = 0.1
"""According to the paper, speedup falls below the ideal line when the network takes more than this share."""
STEEPER = 1.2
FAR_FEWER = 0.7


@dataclass(frozen=True)
class Case:
    """One case of one experiment, real and simulated."""

    experiment: str
    label: str
    program: str
    """What is run: cases with the same one share a plot."""
    scheduler: str
    makespan: float
    simulated: float
    measures: Mapping[str, tuple[float | None, float | None]]
    """What the experiment is about, real and simulated."""
    count: int = 0
    """Workers, where that is what varies."""
    step: int = 0
    """Levels between replications."""
    curves: Mapping[str, Course] = field(default_factory=dict)

    @property
    def slower(self) -> float:
        """The real makespan divided by the simulated one."""
        return self.makespan / self.simulated

    def real(self, measure: str) -> float:
        """A measure on real workers; 0 if there is none."""
        return self.measures[measure][0] or 0.0


def claims(cases: Sequence[Case], step: int) -> list[Claim]:
    """All claims. The rules are those of the simulated experiments, for the columns measured on real workers."""
    scaling = [case for case in cases if case.experiment == "scalability"]
    joining = [case for case in cases if case.experiment == "joining"]
    made: list[Claim] = []
    for program in dict.fromkeys(case.program for case in scaling):
        made += _scaling_claims([case for case in scaling if case.program == program])
    for program in dict.fromkeys(case.program for case in joining):
        ours, theirs = (
            next(c for c in joining if (c.program, c.scheduler) == (program, scheduler))
            for scheduler in ("lheft", "dheft")
        )
        made += _joining_claims(program.split(",")[0], ours, theirs)
    by = {(case.scheduler, case.step): case for case in cases if case.experiment == "failure"}
    return [*made, *_failure_claims(by["lheft", step], by["dheft", 0], by["lheft", 0])]


def _scaling_claims(cases: Sequence[Case]) -> list[Claim]:
    first, last = cases[0], cases[-1]
    below = [c for c in cases if c.real("network overhead") <= LIMIT]
    near = min((c.real("speedup") / c.count for c in below), default=1.0)
    counts = ", ".join(str(c.count) for c in below)
    ideal = last.measures["speedup"][1] or 0.0
    grows = last.real("speedup") > first.real("speedup")
    costs = last.real("network overhead") > first.real("network overhead")
    return [
        judged(
            f"{first.program}: with more contributors speedup grows, and network overhead as well",
            f"speedup {first.real('speedup'):.2f} on {first.count} to {last.real('speedup'):.2f} on {last.count}; "
            f"overhead {first.real('network overhead'):.1%} to {last.real('network overhead'):.1%}",
            grows and costs,
            rule="both are larger with most workers than with one",
            afterwards=True,
        ),
        judged(
            f"{first.program}: speedup is near the ideal line where the network takes at most 10 % of the time",
            f"there ({counts} workers) efficiency is at least {near:.2f}",
            near > 0.9,
            f"the simulated efficiency on {last.count} workers is {ideal / last.count:.2f}; the rest is the engine's "
            "overhead for each task, and that all processes share the cores of one machine",
            rule="efficiency above 0.9 wherever the overhead is at most 10 %",
            afterwards=True,
        ),
    ]  # fmt: skip


def _joining_claims(program: str, ours: Case, theirs: Case) -> list[Claim]:
    def rates(case: Case) -> tuple[float, float]:
        return case.real("tasks/s before"), case.real("tasks/s after all joined")

    steeper = all(after > STEEPER * before for before, after in (rates(ours), rates(theirs)))
    texts = [f"{before:.1f} before, {after:.1f} after" for before, after in (rates(ours), rates(theirs))]
    return [
        judged(
            f"{program}: finished tasks rise more steeply as contributors join",
            f"tasks a second: L-HEFT {texts[0]}; D-HEFT {texts[1]}",
            steeper,
            rule=f"more than {STEEPER:g} times as many tasks a second under both schedulers",
            afterwards=True,
        ),
        judged(
            f"{program}: L-HEFT responds to new contributors a bit faster, since it costs less",
            f"first task after {ours.real('response s'):.2f} s, D-HEFT {theirs.real('response s'):.2f} s",
            ours.real("response s") <= theirs.real("response s"),
            "both decide within milliseconds; what is measured is when data and a core are there, and that varies from "
            "run to run by more than the difference",
            rule="L-HEFT's first task on a new worker begins no later than D-HEFT's, on average",
            afterwards=True,
        ),
    ]


def _failure_claims(ours: Case, theirs: Case, bare: Case) -> list[Claim]:
    again = {case.label: case.real("executed again") for case in (ours, theirs, bare)}
    text = ", ".join(f"{label}: {count:.1f}" for label, count in again.items())
    return [
        judged(
            "far fewer tasks are executed again with replication",
            text,
            again[ours.label] < FAR_FEWER * again[theirs.label],
            "pieces move often, as that takes no time here, so others hold most of what a lost worker made",
            rule=f"less than {FAR_FEWER:g} times as many as under D-HEFT",
            afterwards=True,
        ),
        judged(
            "it is replication that does it",
            text,
            again[ours.label] < again[bare.label],
            "data that others have read is held by them as well, and which that is varies from run to run: with few "
            "losses this is chance. The benchmark of re-execution has more of them",
            rule="fewer than under L-HEFT without replication",
            afterwards=True,
        ),
        judged(
            "after the loss L-HEFT ends earlier than D-HEFT",
            f"{ours.makespan:.1f} s and {theirs.makespan:.1f} s (simulated {ours.simulated:.1f} and "
            f"{theirs.simulated:.1f} s)",
            ours.makespan < theirs.makespan,
            f"the loss costs L-HEFT {ours.real('delay s'):.1f} s and D-HEFT {theirs.real('delay s'):.1f} s",
            rule="a smaller makespan",
            afterwards=True,
        ),
    ]
