"""Deployments of pipelines: the paper's cases, many hosts through the command, and equality with the literal program.

python -m bench.deploy                 times
python -m bench.deploy equivalence     400 small problems against the program over pairs of hosts (minutes)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.generated.pipelines import mixed_machines
from bench.tools import best_of, print_rows
from headrace.deploying import deploy
from headrace.formats.pipeline_ini import write_pipeline
from headrace.formats.platform_ini import Machines, write_machines
from headrace.model.pipeline import PipelineProblem
from headrace.planners.pipeline.plan import deploy_lpsched
from headrace.reproductions.lpsched_cases import averager_problem, microscope_problem, minas_gerais

LARGE = (
    # hosts, clusters, kinds of hosts (0: no two alike), seeds
    (1_000, 12, 8, 5),
    (1_000, 12, 0, 5),
    (10_000, 40, 20, 3),
    (10_000, 40, 0, 2),
)


def paper() -> None:
    """Planning time of each case, judging included."""
    cases: dict[str, PipelineProblem] = {
        "1x2x1, 17 hosts": averager_problem(2, minas_gerais(without=(7, 8))),
        "1x5x1, 17 hosts": averager_problem(5, minas_gerais(without=(7, 8))),
        "1x7x1, 19 hosts under load": averager_problem(7, minas_gerais(loaded=(4, 5, 6, 7, 8, 10, 13, 14))),
        "microscope, 48 hosts": microscope_problem(),
        "microscope, 48 + 24 hosts": microscope_problem(1e6, least=0.7),
    }
    rows = []
    for name, problem in cases.items():
        seconds, made = best_of(3, lambda problem=problem: deploy_lpsched(problem))
        assert made.check() == []
        rows.append(
            (name, made.form, len(made.hosts_used), f"{made.throughput:.4g}", f"{made.gap:.1%}", seconds)
        )
    print_rows(("case", "form", "hosts used", "MB/s", "gap", "seconds"), rows)


def large() -> None:
    """`headrace deploy --gap 0.01` in a process of its own: reading, planning, judging, writing."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for hosts, clusters, kinds, seeds in LARGE:
            for seed in range(seeds):
                problem = mixed_machines(hosts, clusters, kinds, seed=seed)
                write_pipeline(problem.pipeline, folder / "p.ini")
                write_machines(Machines(problem.platform), folder / "m.ini")
                made, seconds, peak = _command(folder)
                sort = f"{kinds} kinds" if kinds else "all different"
                used = f"{made['throughput']:.4g}", len(made["hosts_used"])
                rows.append(
                    (f"{hosts:,} in {clusters}, {sort}", seed, made["form"], *used, f"{made['gap']:.2%}",
                     made["seconds"], seconds, peak)
                )  # fmt: skip
    headers = (
        "hosts in clusters",
        "seed",
        "form",
        "MB/s",
        "hosts used",
        "gap",
        "planning s",
        "command s",
        "peak MB",
    )
    print_rows(headers, rows)


def _command(folder: Path) -> tuple[dict[str, object], float, float]:
    args = ["deploy", "p.ini", "--on", "m.ini", "--gap", "0.01", "--time", "60", "--json"]
    began = time.perf_counter()
    with (folder / "out.json").open("w") as out:
        process = subprocess.Popen([sys.executable, "-m", "headrace.cli", *args], cwd=folder, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    seconds = time.perf_counter() - began
    return json.loads((folder / "out.json").read_text()), seconds, usage.ru_maxrss / 1024


def comparators() -> None:
    """What the simple rules lose on mixed machines."""
    rows = []
    for seed in range(3):
        problem = mixed_machines(200, 4, 5, seed=seed)
        row: list[object] = [seed]
        for planner in ("trivial", "total", "lpsched"):
            made = deploy(problem.pipeline, problem.platform, planner)
            row += [f"{made.throughput:.4g}", len(made.hosts_used)]
        rows.append(row)
    headers = ("seed", "trivial MB/s", "hosts", "total MB/s", "hosts", "lpsched MB/s", "hosts")
    print_rows(headers, rows)


def equivalence(count: int = 400) -> None:
    """The tests' comparison with the literal program, on all of its seeds, both forms, sharing hosts or not."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from planners.pipeline.instances import small
    from planners.pipeline.pairwise import solve_pairwise
    from planners.pipeline.test_equivalence import compare

    began = time.perf_counter()
    literal = solve_pairwise(microscope_problem(), seconds=300.0)
    took = time.perf_counter() - began
    print(
        f"microscope over pairs of 48 hosts: {literal.objective:.6g}, {literal.status} after {took:.3g} s",
        flush=True,
    )
    for several in (False, True):
        solved = [compare(small(seed, several=several)) for seed in range(count)]
        what = "filters may share hosts" if several else "one filter on each host"
        print(
            f"{what}: {count} problems, all equal; {solved.count(False)} infeasible",
            flush=True,
        )


def main() -> None:
    paper()
    large()
    comparators()


if __name__ == "__main__":
    equivalence() if sys.argv[1:] == ["equivalence"] else main()
