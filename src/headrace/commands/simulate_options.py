"""The options of `headrace simulate`: which of them fit together, and the setting that they make."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.commands.dataclass_options import option
from headrace.model.errors import UsageError

if TYPE_CHECKING:
    from headrace.model.behaviour import GridScript
    from headrace.model.platform import Platform
    from headrace.simulator.events.simulate import SimulationConfig

RULES = ("events", "interval", "horizon", "planning", "subset", "reduce", "replan")
"""Options that steer a planner through a run; schedulers that decide by themselves take few of them or none."""


@dataclass(frozen=True)
class SimulateOptions:
    """What the command line says; None where it says nothing."""

    scheduler: str | None = option(
        None,
        "--scheduler",
        "A name listed by `headrace schedulers`, or file.py:Class for your own.",
        short="-s",
        default_text="auto",
    )
    plan: Path | None = option(None, "--plan", "Replay this plan instead of making one.", metavar="FILE")
    error: float = option(
        0.0, "--error", "Run times differ from the estimates by up to this fraction, either way."
    )
    seed: int = option(0, "--seed", "Random seed.")
    events: str | None = option(
        None, "--events", "When to plan: S1 (every interval), S2, S3 (as the run strays), or once."
    )
    interval: float | None = option(
        None, "--interval", "Time between the first two plans.", metavar="SECONDS", min=0
    )
    horizon: str | None = option(
        None, "--horizon", "How far beyond the next plan to hand out work: `tuned`, or a number of intervals."
    )
    planning: float | None = option(
        None,
        "--planning",
        "Virtual planning time per 1,000 tasks times hosts; work continues meanwhile.",
        metavar="SECONDS",
        min=0,
    )
    subset: int | None = option(
        None, "--subset", "Plan at most this many tasks at a time.", metavar="TASKS", min=0
    )
    reduce: str | None = option(
        None, "--reduce", "With --subset, which tasks: shared-file (those that share files) or random."
    )
    replan: str | None = option(
        None,
        "--replan",
        "Plan again on joins, losses, both or neither; 10% also plans every 10% of the makespan.",
    )
    estimates: str | None = option(
        None,
        "--estimates",
        "What schedulers are told: user, history, perfect, bounded:0.3, sampled or forecast.",
    )
    faults: str | None = option(
        None,
        "--faults",
        "For example kill=2@30%, slow=1*0.5@10%+20%, join=2@50%, cluster=a@40%, link=a@9+5.",
    )
    replicate: int | None = option(
        None, "--replicate", "Copy the outputs of every N-th level to idle hosts.", metavar="N", min=0
    )
    links: str | None = option(None, "--links", "Order of link queues: in-order, out-of-order or hybrid.")
    ahead: int | None = option(
        None, "--ahead", "Prefetch inputs for N queued tasks of each host.", metavar="N", min=1
    )
    steal: bool = option(False, "--steal", "Idle hosts steal queued tasks within their site.")
    duplicate: bool = option(False, "--duplicate", "Idle hosts run copies of overdue tasks.")
    time: float | None = option(
        None,
        "--time",
        "Search time of `best` and `coschedule`.",
        metavar="SECONDS",
        default_text="10 for best, 20 for coschedule",
    )

    @property
    def name(self) -> str:
        """The scheduler, also where nobody named one."""
        return "auto" if self.scheduler is None else self.scheduler

    @property
    def for_planner(self) -> dict[str, Any]:
        """What its constructor gets."""
        return {} if self.time is None else {"time": self.time}

    @property
    def given_rules(self) -> tuple[str, ...]:
        """
        >>> SimulateOptions(subset=9, events="S2").given_rules
        ('events', 'subset')
        """
        return tuple(rule for rule in RULES if getattr(self, rule) is not None)

    @property
    def online(self) -> bool:
        """Whether anything was asked for that needs the coordinator."""
        others = (self.estimates, self.faults, self.replicate, self.links, self.ahead)
        asked = bool(self.given_rules) or self.steal or self.duplicate or any(o is not None for o in others)
        return asked or self.name == "dheft"


def setting_of(options: SimulateOptions) -> SimulationConfig:
    """The options as a setting; values that nobody gave keep their defaults."""
    from headrace.core.replan import ReplanPolicy
    from headrace.simulator.events.run import LINK_ORDERS, ExecutionPolicy
    from headrace.simulator.events.simulate import SimulationConfig

    rules: dict[str, Any] = {rule: getattr(options, rule) for rule in RULES}
    rules["horizon"] = _horizon(options.horizon)
    if options.replan is not None and options.replan.endswith("%"):
        rules |= {
            "replan": "both",
            "every": _share(options.replan),
            "events": options.events or "S1",
            "horizon": math.inf if rules["horizon"] is None else rules["horizon"],
        }
    for what, value, known in (
        ("--events", options.events, ("S1", "S2", "S3", "once")),
        ("--reduce", options.reduce, ("random", "shared-file")),
        ("--replan", rules["replan"], ("joins", "losses", "both", "neither", "a share such as 10%")),
        ("--links", options.links, tuple(LINK_ORDERS)),
    ):
        if value is not None and value not in known:
            raise UsageError(f"{what} is {value!r}", hint=f"one of {', '.join(known)}")
    mechanics: dict[str, Any] = {
        "link_order": options.links,
        "ahead": options.ahead,
        "replicate": options.replicate,
        "steal": options.steal,
        "duplicate": options.duplicate,
    }
    return SimulationConfig(
        rules=ReplanPolicy(**{k: v for k, v in rules.items() if v is not None}),
        mechanics=ExecutionPolicy(**{k: v for k, v in mechanics.items() if v is not None}),
        estimates=options.estimates or "user",
        faults=options.faults or "",
        error=options.error,
    )


def require_fitting(options: SimulateOptions, grid: Platform | GridScript) -> None:
    """Refuse values that make no sense, and options without effect with this scheduler, this grid or each other."""
    if options.seed < 0:
        raise UsageError(f"--seed is {options.seed}", hint="give 0 or more")
    if options.plan is not None:
        _require_plan_alone(options)
        return
    if options.online:
        from headrace.simulator.events.simulate import check_estimates

        check_estimates(setting_of(options).estimates)
    _require_taken(options)
    _require_together(options)
    _require_effect(options, grid)


def _require_plan_alone(options: SimulateOptions) -> None:
    if options.scheduler is not None or options.time is not None:
        given = "--scheduler" if options.scheduler is not None else "--time"
        raise UsageError(
            f"--plan carries a plan out; {given} is for making one", hint="leave one of them out"
        )
    if options.online:
        raise UsageError(
            "--plan carries a plan out as it is; the other options let a scheduler decide",
            hint="leave one of them out",
        )


def _require_taken(options: SimulateOptions) -> None:
    from headrace.simulator.events.simulate import rules_taken

    taken = [rule for rule in RULES if rule in rules_taken(options.name)]
    others = [f"--{rule}" for rule in options.given_rules if rule not in taken]
    if others:
        own = ", ".join(f"--{rule}" for rule in taken) or "none"
        raise UsageError(
            f"{options.name!r} decides by itself while the program runs and takes no {', '.join(others)}",
            hint=f"of the planning rules it takes {own}; a planner such as heft or minmin takes all",
        )


def _require_together(options: SimulateOptions) -> None:
    share = options.replan is not None and options.replan.endswith("%")
    if options.events == "once":
        idle = [f"--{o}" for o in ("interval", "horizon") if getattr(options, o) is not None]
        if share:
            idle.append(f"--replan {options.replan}")
        if idle:
            raise UsageError(
                f"--events once plans at the start and gives all work out; {', '.join(idle)} says otherwise",
                hint="--events S1, S2 or S3",
            )
    if share and options.interval is not None:
        raise UsageError(
            f"--interval and --replan {options.replan} both say when to plan", hint="leave one of them out"
        )
    if options.reduce is not None and not options.subset:
        raise UsageError(
            "--reduce says which tasks to plan for where not all are", hint="add --subset 100, or so"
        )


def _require_effect(options: SimulateOptions, grid: Platform | GridScript) -> None:
    from headrace.model.platform import Platform

    platform = grid if isinstance(grid, Platform) else grid.platform
    if options.links is not None and platform.contention != "fifo":
        raise UsageError(
            f"--links orders the queues of fifo links; the contention of {platform.name} is {platform.contention!r}",
            hint="leave it out, or set contention in the platform",
        )
    places = platform.network.host_place.tolist()
    if options.steal and len(set(places)) == len(places):
        raise UsageError(
            f"--steal is for hosts that share storage; every host of {platform.name} keeps its own data",
            hint="leave it out, or describe a site without bandwidth",
        )


def _share(text: str) -> float:
    """
    >>> _share("10%")
    0.1
    """
    try:
        share = float(text.removesuffix("%")) / 100.0
    except ValueError:
        share = 0.0
    if not 0 < share < math.inf:
        raise UsageError(f"--replan is {text!r}", hint="a share of the planned time such as 10%, or joins")
    return share


def _horizon(text: str | None) -> float | str | None:
    if text is None or text == "tuned":
        return text
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise UsageError(f"--horizon is {text!r}", hint="`tuned`, or a number of intervals such as 1.5")
    return value
