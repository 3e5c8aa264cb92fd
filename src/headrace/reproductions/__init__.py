"""Reproductions of the papers' experiments, each a module with `reproduce(ask) -> Reproduction`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TypeAlias

from headrace.experiment.diagram import Diagram
from headrace.model.errors import UsageError

Cell: TypeAlias = str | float | int | None
DATAFLOW_PAPER = "Jin, Buyya: A dataflow system with a local optima-based scheduling for enterprise Grids"
SWEEP_PAPER = (
    "Berman, Casanova, Zagorodnov, Legrand: Using simulation to evaluate scheduling heuristics for a class of "
    "applications in Grid environments (LIP research report 1999-46)"
)


@dataclass(frozen=True)
class Claim:
    """A statement of a paper and our measurement; `why` explains a disagreement.

    `rule` is the criterion for agreement. `afterwards`: the rule, or a setting that it depends on, was
    chosen or changed after first results were known.
    """

    paper: str
    measured: str
    agrees: bool
    why: str = ""
    rule: str = ""
    afterwards: bool = False


@dataclass(frozen=True)
class Reproduction:
    """A reproduced figure or table: the table, the claims, the plots."""

    title: str
    source: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    claims: Sequence[Claim] = ()
    pictures: Sequence[Diagram] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Ask:
    """How much to compute, and where to report progress.

    `seeds` is the number of repetitions of each cell with different random numbers; `tell` receives progress lines.
    """

    seeds: int | None = None
    tell: Callable[[str], None] = field(default=lambda text: None)

    def seeds_or(self, usual: int) -> int:
        """The requested number of seeds, or the experiment's default.

        >>> Ask().seeds_or(5), Ask(seeds=2).seeds_or(5)
        (5, 2)
        """
        return usual if self.seeds is None else self.seeds


FIGURES: dict[str, tuple[str, str]] = {
    "figure-11": ("figure_11", "ten heuristics for parameter sweeps over the size of shared files"),
    "lpsched": ("lpsched", "copies of filters on three clusters, planned by LPSched, Trivial and Total"),
    "lpsched-real": (
        "lpsched_real",
        "the same deployments on real processes, with emulated hosts and networks, beside simulations",
    ),
    "lheft-scale": ("lheft_scale", "L-HEFT against D-HEFT, 640 and 6,400 tasks on 16 to 32 shared PCs"),
    "lheft-ccr": ("lheft_ccr", "ratio of computation to communication from 2 to 12, and data that moves"),
    "lheft-fft": ("lheft_fft", "L-HEFT against D-HEFT on an FFT of 1,664 tasks"),
    "lheft-joining": ("lheft_joining", "two more contributors every minute: finished tasks over time"),
    "lheft-failure": ("lheft_failure", "one contributor lost, with and without replication"),
    "lheft-scalability": ("lheft_scalability", "speedup of matrix multiplication and what the network costs"),
    "lheft-real": (
        "lheft_real",
        "scalability, joining and failure on real local workers, beside simulations",
    ),
    "coscheduling-figure-3": (
        "coscheduling_figure_3",
        "gain of co-scheduling over local processing as transfers to a remote site get slower",
    ),
    "estimates": ("estimates", "quality of estimates, from perfect to forecast, under five heuristics"),
    "constraints": ("constraints", "rules of the user on 47 image-processing programs"),
    "experiments": ("experiments", "two tasks in four versions each, on 47 programs and real workers"),
    "planning-events": (
        "planning_events",
        "when to replan on changing grids; order of links; work stealing",
    ),
}
"""Name -> (module in this folder, one-line description)."""


REAL = {"lpsched": "lpsched-real"}
"""Figures of simulations that also run on real processes: name -> name of the figure that does."""


def reproduce(name: str, ask: Ask | None = None, real: bool = False) -> Reproduction:
    """Run one of the papers' experiments; `real`: on real processes with emulated hosts."""
    if name not in FIGURES:
        raise UsageError(
            f"there is no figure {name!r}",
            where="reproduce",
            hint=f"one of: {', '.join(FIGURES)}",
        )
    if real and name not in REAL:
        raise UsageError(f"{name!r} has no real runs", where="reproduce", hint=f"one of: {', '.join(REAL)}")
    module = import_module(f"headrace.reproductions.{FIGURES[REAL[name] if real else name][0]}")
    made: Reproduction = module.reproduce(ask or Ask())
    return made
