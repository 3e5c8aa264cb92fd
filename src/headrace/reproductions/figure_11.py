"""Figure 11 of the parameter-sweep paper: ten heuristics over the size of shared files.

H1 to H9 plan the sweep, and the plan is executed in virtual time twice: with the planned order on links,
and by the paper's rule that a link skips transfers that are not ready. H0 does not plan: an idle host takes
the next task, fetches its inputs and runs it. Every cell is the mean over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import Problem
from headrace.experiment.diagram import Diagram
from headrace.model.platform import Host, Platform, Site
from headrace.model.program import Program
from headrace.reproductions import SWEEP_PAPER, Ask, Claim, Reproduction
from headrace.reproductions.contributors import standard_error

KB = 1000.0
CHUNKS, TASKS_IN_CHUNK = 8, 50
SIZES = tuple(75 * 2**i for i in range(8))
"""Size of the shared files in KB."""
HEURISTICS = {
    "H0": "workqueue",
    "H1": "minmin",
    "H2": "maxmin",
    "H3": "sufferage",
    "H4": "xsufferage",
    "H5": "random-minmin",
    "H6": "random-maxmin",
    "H7": "random-sufferage",
    "H8": "random-xsufferage",
    "H9": "sufferage2",
}
SELF_SCHEDULED = "H0"
SIX = ("H0", "H1", "H2", "H3", "H4", "H9")
"""Heuristics shown in the paper's figure."""
DRAWN = {"H5": "H1", "H6": "H2", "H7": "H3", "H8": "H4"}
"""Randomized variants, and the heuristics they are based on."""
SEEDS = 5
SEARCH = 2.0
"""Search time of `best` in seconds for each size and order, with the first seed."""
REFERENCE = {
    ("in chunks", 1200): (4379, 3797, 4451, 4055, 3800, 3774),
    ("in chunks", 2400): (5233, 4447, 5086, 4756, 4510, 4303),
    ("in chunks", 4800): (7090, 4117, 6094, 4771, 4266, 4319),
    ("shuffled", 1200): (4398, 3747, 4479, 3940, 3818, 3753),
    ("shuffled", 2400): (5272, 4373, 5084, 4440, 4453, 4289),
    ("shuffled", 4800): (7214, 4191, 6078, 5203, 4246, 4211),
    ("shuffled", 9600): (11054, 4716, 7782, 6349, 4711, 4739),
}
"""Reference makespans of SIX for the same set-up, from a prototype that books inputs and results in the first gaps;
not computed here."""


def figure_11(shared_kb: float, seed: int, shuffled: bool = False) -> tuple[Program, Platform]:
    """400 tasks in 8 chunks, one file of `shared_kb` KB per chunk, on 3 clusters behind links of 10 KB/s.

    The clusters have 4, 6 and 12 hosts with an availability of 100, 70 and 30 %. Each task has two private inputs
    and one output of 8 to 12 KB and runs for 90 to 110 s. `shuffled`: tasks are in random order.

    >>> program, platform = figure_11(1200, seed=0)
    >>> len(program.tasks), len(platform.hosts), platform.origin
    (400, 22, 'origin')
    """
    rng = np.random.default_rng([seed, 11])
    chunk = np.repeat(np.arange(CHUNKS), TASKS_IN_CHUNK)
    if shuffled:
        rng.shuffle(chunk)
    name = f"figure-11-{shared_kb:g}"
    program = tasks_that_share_files(name, rng, chunk.tolist(), [shared_kb * KB] * CHUNKS)
    clusters = [(4, 0.0), (6, 0.3), (12, 0.7)]
    sites = [
        Site(f"c{c}", tuple(Host(f"c{c}h{i}", load=load) for i in range(hosts)), uplink=10 * KB)
        for c, (hosts, load) in enumerate(clusters)
    ]
    return program, Platform((*sites, Site("origin")), contention="fifo", origin="origin", name="figure-11")


def tasks_that_share_files(
    name: str, rng: np.random.Generator, chunk: Sequence[int], shared: Sequence[float]
) -> Program:
    """A task for each entry of `chunk`, the index of the shared file it reads; sizes are in bytes."""
    program = Program(name)
    files = [program.input(f"shared{i}", size=size) for i, size in enumerate(shared)]
    work = rng.uniform(90, 110, len(chunk))
    size = rng.uniform(8, 12, (len(chunk), 3)) * KB
    for t, c in enumerate(chunk):
        own = [program.input(f"in{t}.{i}", size=float(size[t, i])) for i in range(2)]
        program.task(
            inputs=[files[c], *own],
            outputs={f"out{t}": float(size[t, 2])},
            work=float(work[t]),
            name=f"t{t}",
        )
    return program


@dataclass(frozen=True)
class Row:
    """One size of shared files with tasks in one order."""

    order: str
    size: int
    makespans: dict[str, list[float]]
    """Makespans of each heuristic, by seed."""
    best: float
    """`best` and the bound are for the first seed alone."""
    bound: float
    drift: float
    """The largest relative deviation of an executed plan from the planned makespan,"""
    drift_by_rule: float
    """and the same under the paper's rule for links."""
    stepwise: dict[str, float]
    """H1 and H4 planned in small steps, with the first seed."""

    @property
    def mean(self) -> dict[str, float]:
        """The mean makespan of each heuristic."""
        return {h: float(np.mean(values)) for h, values in self.makespans.items()}

    @property
    def first(self) -> dict[str, float]:
        """The makespans with the first seed, for comparison with `best`."""
        return {h: values[0] for h, values in self.makespans.items()}

    @property
    def least(self) -> float:
        return min(self.mean[h] for h in SIX)


def reproduce(ask: Ask) -> Reproduction:
    """H0 to H9 over all sizes, tasks in chunk order and shuffled."""
    seeds = ask.seeds_or(SEEDS)
    rows = [_row(order, size, seeds, ask) for order in ("in chunks", "shuffled") for size in SIZES]
    headers = ["tasks", "shared KB", *HEURISTICS, "best", "bound", "H4 / best", "H9 / best"]
    return Reproduction(
        title="Effect of shared file size on different scheduling strategies",
        source=f"{SWEEP_PAPER}, figure 11",
        headers=headers,
        rows=[
            [
                r.order,
                r.size,
                *(r.mean[h] for h in HEURISTICS),
                r.best,
                r.bound,
                r.first["H4"] / r.best,
                r.first["H9"] / r.best,
            ]
            for r in rows
        ],
        claims=claims(rows),
        pictures=[_picture(rows, order) for order in ("in chunks", "shuffled")],
        notes=_notes(rows, seeds),
    )


def _row(order: str, size: int, seeds: int, ask: Ask) -> Row:
    from headrace.planners.registry import make
    from headrace.planners.search.best import Best
    from headrace.simulator.replay.plan_replay import replay_plan

    ask.tell(f"tasks {order}, shared files of {size} KB")
    makespans: dict[str, list[float]] = {h: [] for h in HEURISTICS}
    drift = by_rule = 0.0
    for seed in range(seeds):
        program, platform = figure_11(size, seed, order == "shuffled")
        problem = Problem(program.graph, platform, seed=seed)
        makespans[SELF_SCHEDULED].append(self_scheduled(program, platform))
        for heuristic, name in HEURISTICS.items():
            if heuristic == SELF_SCHEDULED:
                continue
            plan = make(name).plan(problem)
            executed = replay_plan(plan).makespan
            drift = max(drift, abs(executed / plan.makespan - 1.0))
            makespans[heuristic].append(executed)
            if heuristic in SIX:
                ruled = by_the_papers_rule(program, platform, name, seed)
                by_rule = max(by_rule, abs(ruled / plan.makespan - 1.0))
    program, platform = figure_11(size, 0, order == "shuffled")
    best = Best(time=SEARCH).plan(Problem(program.graph, platform))
    return Row(
        order,
        size,
        makespans,
        replay_plan(best).makespan,
        best.bound,
        drift,
        by_rule,
        {h: little_by_little(program, platform, HEURISTICS[h]) for h in ("H1", "H4")},
    )


def self_scheduled(program: Program, platform: Platform) -> float:
    """The makespan of a workqueue without prefetching: hosts fetch the inputs of a task when they take it."""
    from headrace.reproductions.contributors import FETCHING
    from headrace.simulator.events.config import SimulationConfig
    from headrace.simulator.events.simulate import simulate_program

    fetching = SimulationConfig(execution=FETCHING)
    return simulate_program(program, platform, HEURISTICS[SELF_SCHEDULED], fetching).makespan


def by_the_papers_rule(program: Program, platform: Platform, name: str, seed: int) -> float:
    """The makespan of a static plan executed from queues, where links skip files that are not ready."""
    return _steered(program, platform, name, ReplanPolicy(events="once", idle=False), seed)


def little_by_little(program: Program, platform: Platform, name: str) -> float:
    """The makespan when only tasks due before the next plan are planned, every 100 s, as in the paper's program."""
    return _steered(program, platform, name, ReplanPolicy(events="S1", interval=100.0, horizon=0.0), seed=0)


def _steered(program: Program, platform: Platform, name: str, rules: ReplanPolicy, seed: int) -> float:
    from headrace.core.replan import Replan
    from headrace.planners.registry import make
    from headrace.reproductions.contributors import AS_PUBLISHED
    from headrace.simulator.events.config import SimulationConfig
    from headrace.simulator.events.simulate import simulate_program

    queues = SimulationConfig(execution=AS_PUBLISHED)
    return simulate_program(program, platform, Replan(make(name), rules, seed), queues, seed=seed).makespan


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The paper's statements about its figure, compared with these rows."""
    large = [r for r in rows if r.size >= 1200]
    largest = [r for r in rows if r.size >= 4800]
    h4, h9 = _above_least(rows, "H4"), _above_least(rows, "H9")
    drawn_off = {drawn: _largest_difference(rows, drawn, plain) for drawn, plain in DRAWN.items()}
    shuffled_off = _largest_difference([r for r in rows if r.order == "shuffled"], "H7", "H3")
    behind = max(r.mean["H0"] / r.least for r in rows)
    made = [
        Claim(
            "workqueue (H0) leads to very bad performance",
            f"up to {behind:.2f} times the best heuristic; "
            f"the worst of the six in {sum(_is_worst(r) for r in largest)} of {len(largest)} cases from 4800 KB on",
            behind > 1.5 and sum(_is_worst(r) for r in largest) > len(largest) / 2,
            "with small files it hardly matters when they are fetched",
            rule="somewhere above 1.5 times the best heuristic, and the worst in most cases from 4800 KB on",
            afterwards=True,
        ),
        Claim(
            "sufferage over hosts (H3) does not exploit shared files; sufferage over clusters (H4) does",
            f"from 1200 KB on H3 takes {_mean_ratio(large, 'H3', 'H4'):.2f} times as long as H4",
            _mean_ratio(large, "H3", "H4") > 1.0,
            rule="H3 takes longer than H4 from 1200 KB on, on average",
        ),
        Claim(
            "extended sufferage (H4) and sufferage II (H9) are best at all sizes",
            f"H4 takes {h4:.3f} times, H9 {h9:.3f} times the best of the six",
            h4 < 1.005 and h9 < 1.005,
            "min-min is better here; see the next claim",
            rule="less than 1.005 times the best of the six, on average",
        ),
        Claim(
            "min-min (H1) is worse than the sufferage heuristics",
            f"H1 takes {_mean_ratio(rows, 'H1', 'H4'):.3f} times as long as H4; planned in small steps "
            f"{_stepwise(rows):.3f} times, {_stepwise(largest):.3f} times from 4800 KB on",
            _mean_ratio(rows, "H1", "H4") > 1.0,
            "in part because the paper's program plans in small steps: near tasks are planned without regard to "
            "later ones. Two other differences do not explain it: the paper's rule for links changes no makespan "
            f"by more than {_by_rule(rows):.1%}, and with inputs and results in the first gaps of the links, as in "
            f"its charts, H1 still takes {_reference():.3f} times as long as H4",
            rule="H1 takes longer than H4, on average",
        ),
        Claim(
            "the randomized forms (H5-H8) perform like the heuristics they are based on",
            ", ".join(f"{drawn} differs by up to {off:.1%}" for drawn, off in drawn_off.items()),
            max(drawn_off.values()) < 0.01,
            "only H7 differs, in both directions: many tasks have sufferage 0, and among ties it draws at random "
            "where H3 takes the lowest task number. With shuffled tasks, where the number carries no information, "
            f"it still differs by up to {shuffled_off:.1%}",
            rule="less than 1 % off at every size",
        ),
        Claim(
            "max-min (H2) does as well as the sufferage heuristics at 4800 and 9600 KB, an artefact of this set-up",
            f"there H2 takes {_mean_ratio(largest, 'H2', 'H4'):.2f} times as long as H4",
            _mean_ratio(largest, "H2", "H4") < 1.05,
            "the paper calls it an idiosyncrasy; elsewhere it expects H2 between H1 and H3",
            rule="less than 1.05 times H4, on average",
        ),
    ]
    return [replace(claim, why="" if claim.agrees else claim.why) for claim in made]


def _is_worst(row: Row) -> bool:
    return row.mean["H0"] >= max(row.mean[h] for h in SIX)


def _geometric(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _mean_ratio(rows: Sequence[Row], one: str, other: str) -> float:
    return _geometric([r.mean[one] / r.mean[other] for r in rows])


def _above_least(rows: Sequence[Row], heuristic: str) -> float:
    return _geometric([r.mean[heuristic] / r.least for r in rows])


def _largest_difference(rows: Sequence[Row], one: str, other: str) -> float:
    return max((abs(r.mean[one] / r.mean[other] - 1.0) for r in rows), default=0.0)


def _by_rule(rows: Sequence[Row]) -> float:
    return max(r.drift_by_rule for r in rows)


def _stepwise(rows: Sequence[Row]) -> float:
    return _geometric([r.stepwise["H1"] / r.stepwise["H4"] for r in rows])


def _reference() -> float:
    one, other = SIX.index("H1"), SIX.index("H4")
    return _geometric([row[one] / row[other] for row in REFERENCE.values()])


def _picture(rows: Sequence[Row], order: str) -> Diagram:
    chosen = [r for r in rows if r.order == order]
    curves: dict[str, list[float | None]] = {f"{h} {HEURISTICS[h]}": [r.mean[h] for r in chosen] for h in SIX}
    curves["best found"] = [r.best for r in chosen]
    errors = {f"{h} {HEURISTICS[h]}": [standard_error(r.makespans[h]) for r in chosen] for h in SIX}
    return Diagram(
        title=f"Makespan over the size of shared files, tasks {order}",
        x_label="shared file, KB",
        y_label="makespan, s",
        x=[float(r.size) for r in chosen],
        curves=curves,
        errors=errors,
    )


def _notes(rows: Sequence[Row], seeds: int) -> list[str]:
    shares = []
    for i, h in enumerate(SIX):
        ratios = [r.mean[h] / REFERENCE[r.order, r.size][i] for r in rows if (r.order, r.size) in REFERENCE]
        shares.append(f"{h} {_geometric(ratios):.2f}")
    gap = {h: [r.first[h] / r.best - 1.0 for r in rows] for h in ("H4", "H9")}
    return [
        f"Means of {seeds} seeds; `best` and the bound with the first seed, {SEARCH:g} s of search each.",
        "H0 is a self-scheduled workqueue: an idle host takes the next task, requests its inputs and starts when "
        "they have arrived. In an earlier version, H0 was the replay of a plan, which sends inputs ahead of their "
        "tasks and so hides the main weakness of H0: with tasks in chunks it took 3,765 and 4,745 s at 1200 and "
        "4800 KB. The criteria of the claims were written before that change.",
        "H1 to H9 are planned, then executed with the planned order on every link. The makespans differ from the "
        f"planned ones by a share of {max(r.drift for r in rows):.1e} at most, and by {_by_rule(rows):.1e} with "
        "the paper's rule, by which a link skips a transfer that is not ready: estimates are exact, and plans "
        "account for link contention.",
        "A prototype with the same set-up reserves links for results as early as for inputs, so that its plans "
        "overestimate the makespan. Geometric means of the makespans here over those that it reached: "
        + ", ".join(shares) + ".",
        f"H4 is {np.mean(gap['H4']):.1%} above `best` on average, {max(gap['H4']):.1%} at most; "
        f"H9 {np.mean(gap['H9']):.1%} and {max(gap['H9']):.1%}. "
        f"`best` is {np.mean([r.best / r.bound - 1.0 for r in rows]):.1%} above the bound.",
        "With three clusters there are two gaps between completion times, and the larger one equals their mean plus "
        "standard deviation: no gap counts as a jump, the first gap is used, and H4 and H9 are the same rule here.",
    ]  # fmt: skip
