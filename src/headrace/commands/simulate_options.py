"""The options of `headrace simulate`, beside those of `SimulationConfig`; which of them fit together."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.commands.dataclass_options import option
from headrace.commands.names import scheduler_name, scheduler_names
from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.replan_policy import ReplanPolicy
from headrace.model.errors import UsageError
from headrace.simulator.events.config import SimulationConfig

if TYPE_CHECKING:
    from headrace.model.behaviour import GridScript
    from headrace.model.platform import Platform


@dataclass(frozen=True)
class SimulateSource:
    """Who decides: a scheduler, or a plan that exists."""

    scheduler: str = option(
        "auto",
        "--scheduler",
        "A name listed by `headrace schedulers`, or file.py:Class for your own.",
        short="-s",
        metavar="NAME",
        parse=scheduler_name,
        complete=scheduler_names,
    )
    plan: Path | None = option(None, "--plan", "Replay this plan instead of scheduling.", metavar="FILE")
    rules: Path | None = option(
        None,
        "--rules",
        "Obey the rules of this file, and judge what happened.",
        metavar="FILE",
        default_text="no rules",
    )
    seed: int = option(0, "--seed", "Random seed.", min=0)
    time: float | None = option(
        None,
        "--time",
        "Search time of `best` and `coschedule`.",
        metavar="SECONDS",
        default_text="10 for best, 20 for coschedule",
    )

    @property
    def for_planner(self) -> dict[str, Any]:
        """What the scheduler's constructor gets."""
        return {} if self.time is None else {"time": self.time}


def changed_options(config: Any, default: Any = None) -> list[str]:
    """The options whose values are not their defaults.

    >>> changed_options(SimulationConfig(policy=ReplanPolicy(subset=9), error=0.2))
    ['--subset', '--error']
    """
    default = type(config)() if default is None else default
    found: list[str] = []
    for each in fields(config):
        value, usual = getattr(config, each.name), getattr(default, each.name)
        if is_dataclass(value):
            found += changed_options(value, usual)
        elif value != usual and "option" in each.metadata:
            found.append(each.metadata["option"])
    return found


def require_fitting(source: SimulateSource, config: SimulationConfig, grid: Platform | GridScript) -> None:
    """Refuse options without effect with this scheduler, this grid or each other."""
    if source.plan is not None:
        _require_plan_alone(source, config)
        return
    _require_accepted(source.scheduler, config.policy)
    _require_together(config.policy)
    if source.rules is None and config.policy.when_impossible != ReplanPolicy().when_impossible:
        raise UsageError("--when-impossible has no effect without rules", hint="add --rules FILE")
    _require_effect(config.execution, grid)


def _require_plan_alone(source: SimulateSource, config: SimulationConfig) -> None:
    given = [] if source.scheduler == SimulateSource().scheduler else ["--scheduler"]
    given += [] if source.time is None else ["--time"]
    given += [name for name in changed_options(config) if name != "--error"]
    if given:
        raise UsageError(
            f"--plan replays a plan as it is; {', '.join(given)} would let a scheduler decide",
            hint="leave one of them out",
        )


def _require_accepted(scheduler: str, policy: ReplanPolicy) -> None:
    from headrace.online.adapter import policy_fields

    accepted = policy_fields(scheduler)
    options = {
        each.name: str(each.metadata["option"]) for each in fields(policy) if "option" in each.metadata
    }
    default = ReplanPolicy()
    others = [
        option
        for name, option in options.items()
        if name not in accepted and getattr(policy, name) != getattr(default, name)
    ]
    if others:
        own = ", ".join(options[name] for name in accepted if name in options)
        raise UsageError(
            f"{scheduler!r} decides by itself while the program runs and does not accept {', '.join(others)}",
            hint=f"it accepts only {own}; a planner such as heft accepts all"
            if own
            else "use a planner such as heft or minmin",
        )


def _require_together(policy: ReplanPolicy) -> None:
    default = ReplanPolicy()
    if policy.events == "once":
        idle = [
            f"--{name}" for name in ("interval", "horizon") if getattr(policy, name) != getattr(default, name)
        ]
        if idle:
            raise UsageError(
                f"--events once plans at the start and hands all work out; {', '.join(idle)} has no effect",
                hint="add --events S1, S2 or S3",
            )
    if policy.share > 0 and policy.interval is not None:
        raise UsageError(
            f"--interval and --replan {policy.replan} both say when to plan", hint="leave one of them out"
        )
    if policy.reduce != default.reduce and not policy.subset:
        raise UsageError("--reduce has no effect without --subset", hint="add --subset 100, for example")


def _require_effect(execution: ExecutionPolicy, grid: Platform | GridScript) -> None:
    from headrace.model.platform import Platform

    platform = grid if isinstance(grid, Platform) else grid.platform
    if execution.link_order != ExecutionPolicy().link_order and platform.contention != "fifo":
        raise UsageError(
            f"--links orders the queues of fifo links; the contention of {platform.name} is {platform.contention!r}",
            hint="leave it out, or set contention in the platform",
        )
    places = platform.network.host_place.tolist()
    if execution.steal and len(set(places)) == len(places):
        raise UsageError(
            f"--steal is for hosts that share storage; every host of {platform.name} keeps its own data",
            hint="leave it out, or describe a site without bandwidth",
        )
