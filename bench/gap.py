"""How far plans are from their bounds where links are busy.

python -m bench.gap recorded [--on lab,sites,wf32] [--time 10] [--only NAME]
        recorded workflows: makespan / full bound of heft, auto and best, and the best listed scheduler (20 minutes)
python -m bench.gap held-out [--time 10]      generated programs and platforms that nothing was tuned on (5 minutes)
python -m bench.gap small [--cases 20] [--solver 600] [--time 10]
        best against a plain CP-SAT model of the same problem that is given 10 minutes (up to 3.5 hours)
python -m bench.gap proofs [--cases 6] [--time 20]
        best on problems of up to 60 tasks: its own bound, with which it ends (5 minutes)
python -m bench.gap auto [--only NAME]        auto against every scheduler that takes no longer than it (10 minutes)
python -m bench.gap layered [--time 10] [--only NAME]
        layered graphs on pairs of hosts without contention: how much shorter best is than heft (3 minutes)
python -m bench.gap fair [--time 10] [--only NAME]
        recorded workflows: best under fair links against best under fifo links (10 minutes)

--json FILE writes the rows as JSON, too. --known FILE: such rows, whose bounds are used where they are better. --cpu:
the clock that ends searches counts CPU seconds, for a machine that others use.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from bench.gap_cases import CONTENDED, Case, held_out, layered_graphs, medium, recorded, small
from bench.tools import geometric_mean, print_rows, read_dag, read_network
from headrace.core.scheduler import Planner, Problem
from headrace.model.bound import Bound, bound_name
from headrace.model.check import require_valid
from headrace.model.plan import Plan
from headrace.planners.bounds import full_bound
from headrace.planners.registry import entries, make
from headrace.planners.search import annealing_search, contended, exact
from headrace.planners.search import best as search_best
from headrace.testing.exact_links import solved_makespan

Row = dict[str, object]
SKIPPED = ("auto", "best", "coschedule", "search")
"""Schedulers that are not compared with: those that search for a given time."""
ROUNDING = 0.01
"""Percent: the solver rounds durations down to 0.1 ms."""
QUICK = ("heft", "cpop", "peft", "wu-gajski", "locality", "subset", "single-host", "round-robin")
"""Those that take less than a second on every recorded workflow."""


KNOWN: dict[tuple[str, str], Bound] = {}
"""Bounds that earlier runs have proven, by program and platform."""


def known_bounds(files: Iterable[Path]) -> dict[tuple[str, str], Bound]:
    """The best bounds in files of rows."""
    found: dict[tuple[str, str], Bound] = {}
    for path in files:
        for row in json.loads(path.read_text()):
            key = (row["program"], row["platform"])
            found[key] = max(found.get(key, Bound(0.0)), Bound(row["bound"], row["argument"]))
    return found


def planned(name: str, problem: Problem, **options: float) -> tuple[Plan, float]:
    """A checked plan, and the CPU seconds of planning."""
    planner = make(name, **options)
    began = time.process_time()
    plan = planner.plan(problem)
    spent = time.process_time() - began
    require_valid(problem.graph, problem.platform, plan)
    return plan, spent


def listed(problem: Problem, names: Iterable[str]) -> tuple[float, str]:
    """The least makespan of these schedulers, and whose it is."""
    return min((planned(name, problem)[0].makespan, name) for name in names)


def gaps(cases: Iterable[Case], seconds: float, bound_seconds: float) -> list[Row]:
    rows: list[Row] = []
    for case in cases:
        problem = case.problem
        heft, auto = (planned(name, problem)[0].makespan for name in ("heft", "auto"))
        least, whose = listed(problem, QUICK)
        best, spent = planned("best", problem, time=seconds)
        bound = full_bound(problem, most=best.makespan, seconds=bound_seconds)
        bounds = (bound, best.bound, KNOWN.get((case.name, case.where), Bound(0.0)))
        bound = max(Bound(float(b), bound_name(b)) for b in bounds)
        rows.append(
            {
                "program": case.name, "platform": case.where, "tasks": problem.graph.n_tasks,
                "bound": float(bound), "argument": bound.name, "heft / bound": heft / bound,
                "auto / bound": auto / bound, "best / bound": best.makespan / bound,
                "listed / bound": least / bound, "listed": whose, "CPU s of best": spent,
            }
        )  # fmt: skip
        print(
            "  ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in rows[-1].values()), flush=True
        )
    return rows


def means(rows: list[Row], columns: tuple[str, ...]) -> None:
    """Geometric means by platform, and over the contended ones."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row["platform"]), []).append(row)
    contended = [row for name in CONTENDED for row in groups.get(name, [])]
    for name, group in (
        *groups.items(),
        *([("contended", contended)] if len(groups) > 1 and contended else []),
    ):
        values = (
            f"{column} {geometric_mean(float(str(r[column])) for r in group):.3f}" for column in columns
        )
        print(f"geometric mean, {name}: {', '.join(values)}")


def judged_gaps(cases: Iterable[Case], seconds: float, bound_seconds: float) -> list[Row]:
    rows = gaps(cases, seconds, bound_seconds)
    means(rows, ("heft / bound", "auto / bound", "best / bound"))
    worse = [r for r in rows if float(str(r["best / bound"])) > float(str(r["listed / bound"])) * (1 + 1e-9)]
    print(f"{len(worse)} of {len(rows)} where a listed scheduler is better than best")
    return rows


def against_solver(count: int, solver_seconds: float, seconds: float) -> list[Row]:
    """`best` and the plan of a plain constraint program; a negative gain means that the program's is shorter."""
    rows: list[Row] = []
    for case in small(count):
        best, spent = planned("best", case.problem, time=seconds)
        found = solved_makespan(case.problem, solver_seconds)
        rows.append(
            {
                "program": case.name, "platform": case.where, "best": best.makespan, "solver": found.makespan,
                "proven": found.bound, "shorter, %": 100 * (1 - best.makespan / found.makespan),
                "CPU s of best": spent,
            }
        )  # fmt: skip
        print(
            "  ".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in rows[-1].values()), flush=True
        )
    worse = sum(float(str(row["shorter, %"])) < -ROUNDING for row in rows)
    print(f"{worse} of {len(rows)} where the solver's plan is shorter")
    return rows


def proofs(count: int, seconds: float) -> list[Row]:
    """How close `best` brings its plan and its bound."""
    rows: list[Row] = []
    for case in medium(count):
        heft, _ = planned("heft", case.problem)
        best, spent = planned("best", case.problem, time=seconds)
        rows.append(
            {
                "program": case.name, "platform": case.where, "heft / bound": heft.makespan / best.bound,
                "best / bound": best.makespan / best.bound, "argument": bound_name(best.bound),
                "CPU s of best": spent,
            }
        )  # fmt: skip
        print(
            "  ".join(f"{v:.5g}" if isinstance(v, float) else str(v) for v in rows[-1].values()), flush=True
        )
    close = sum(float(str(row["best / bound"])) < 1.03 for row in rows)
    print(f"{close} of {len(rows)} within 3 % of their bound")
    return rows


def auto_against_all(only: str) -> list[Row]:
    """`auto` against every listed scheduler whose CPU time is at most that of `auto`."""
    large = Case("layered-3000", "h64", Problem(read_dag(3000), read_network("h64")))
    busy = replace(large.problem, platform=replace(large.problem.platform, contention="fifo"))
    layered = (large, Case("layered-3000", "h64 fifo", busy))
    cases = [*recorded(CONTENDED, only), *(case for case in layered if only in case.name)]
    names = [entry.name for entry in entries() if entry.name not in SKIPPED]
    names = [name for name in names if isinstance(make(name), Planner)]
    rows: list[Row] = []
    for case in cases:
        auto, spent = planned("auto", case.problem)
        auto, spent = planned("auto", case.problem)
        shorter: list[tuple[float, str]] = []
        for name in names if case.problem.graph.n_tasks <= 3000 else QUICK:
            plan, needed = planned(name, case.problem)
            if needed <= spent and plan.makespan < auto.makespan * (1 - 1e-9):
                shorter.append((plan.makespan / auto.makespan, name))
        rows.append(
            {
                "program": case.name, "platform": case.where, "auto": auto.makespan, "CPU s": spent,
                "chose": auto.notes[-1], "loses to": ", ".join(f"{n} {r:.3f}" for r, n in sorted(shorter)),
            }
        )  # fmt: skip
        print(
            "  ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in rows[-1].values()), flush=True
        )
    print(f"{sum(bool(row['loses to']) for row in rows)} of {len(rows)} lost")
    return rows


def against_heft(only: str, seconds: float, bound_seconds: float) -> list[Row]:
    rows: list[Row] = []
    for case in layered_graphs(only):
        heft, _ = planned("heft", case.problem)
        best, spent = planned("best", case.problem, time=seconds)
        bound = max(best.bound, full_bound(case.problem, most=best.makespan, seconds=bound_seconds))
        rows.append(
            {
                "program": case.name, "platform": case.where, "heft / bound": heft.makespan / bound,
                "best / bound": best.makespan / bound, "best / heft": best.makespan / heft.makespan,
                "CPU s of best": spent,
            }
        )  # fmt: skip
        print(
            "  ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in rows[-1].values()), flush=True
        )
    mean = geometric_mean(float(str(row["best / heft"])) for row in rows)
    print(f"best is {100 * (1 - mean):.2f} % shorter than heft in geometric mean")
    return rows


def fair_against_fifo(only: str, seconds: float) -> list[Row]:
    rows: list[Row] = []
    for case in recorded(CONTENDED, only):
        platform = replace(case.problem.platform, contention="fair")
        fair_problem = Problem(case.problem.graph, platform)
        fifo, _ = planned("best", case.problem, time=seconds)
        fair, spent = planned("best", fair_problem, time=seconds)
        heft, _ = planned("heft", fair_problem)
        rows.append(
            {
                "program": case.name, "platform": case.where, "heft, fair": heft.makespan,
                "best, fifo": fifo.makespan, "best, fair": fair.makespan,
                "fair / fifo": fair.makespan / fifo.makespan, "CPU s of best": spent,
            }
        )  # fmt: skip
        print(
            "  ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in rows[-1].values()), flush=True
        )
    means(rows, ("fair / fifo",))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what", choices=("recorded", "held-out", "small", "proofs", "auto", "layered", "fair")
    )
    parser.add_argument("--on", default="lab,sites,wf32")
    parser.add_argument("--only", default="")
    parser.add_argument("--time", type=float, default=10.0)
    parser.add_argument("--bound", type=float, default=2.0, help="seconds for each bound")
    parser.add_argument("--known", type=Path, action="append", default=[])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--solver", type=float, default=600.0)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    KNOWN.update(known_bounds(asked.known))
    if asked.cpu:
        for module in (search_best, contended, annealing_search, exact):
            vars(module)["work_clock"] = time.process_time
    ways: dict[str, Callable[[], list[Row]]] = {
        "recorded": lambda: judged_gaps(
            recorded(tuple(asked.on.split(",")), asked.only), asked.time, asked.bound
        ),
        "held-out": lambda: judged_gaps(held_out(asked.only), asked.time, asked.bound),
        "small": lambda: against_solver(asked.cases, asked.solver, asked.time),
        "proofs": lambda: proofs(asked.cases, asked.time),
        "auto": lambda: auto_against_all(asked.only),
        "layered": lambda: against_heft(asked.only, asked.time, asked.bound),
        "fair": lambda: fair_against_fifo(asked.only, asked.time),
    }
    rows = ways[asked.what]()
    if rows:
        print_rows(tuple(rows[0]), (tuple(row.values()) for row in rows))
    if asked.json is not None:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
