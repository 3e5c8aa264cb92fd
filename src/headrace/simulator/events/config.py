"""Settings of a simulated run, in addition to the program, the grid and the scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from headrace.core.execution_policy import ExecutionPolicy
from headrace.core.replan_policy import ReplanPolicy
from headrace.model.arguments import as_float, wrong_argument
from headrace.model.errors import UsageError
from headrace.predict.information import LEARNING, parse_quality

ESTIMATES = (
    "user, history, perfect, bounded:0.3 (up to 30% wrong), sampled, forecast, "
    "history+sampled or history+forecast"
)


@dataclass(frozen=True)
class SimulationConfig:
    """Settings of a simulated run. The defaults are those of the command line.

    Raises UsageError for settings of the wrong type, an unknown kind of estimates or an error outside [0, 1).

    >>> SimulationConfig(estimates="history", error=0.2, faults="kill=1@50%").planned is None
    True
    """

    policy: ReplanPolicy = field(default_factory=ReplanPolicy)
    """When a planner replans; most online schedulers accept only the defaults (see `policy_fields`)."""
    execution: ExecutionPolicy = field(default_factory=ExecutionPolicy)
    estimates: str = field(
        default="user",
        metadata={
            "option": "--estimates",
            "help": f"Run times and speeds that the scheduler sees: {ESTIMATES}.",
        },
    )
    faults: str = field(
        default="",
        metadata={
            "option": "--faults",
            "help": "Faults and their times, such as kill=2@30%,slow=n1*0.5@100+60.",
        },
    )
    error: float = field(
        default=0.0,
        metadata={
            "option": "--error",
            "help": "Real run times differ from the estimates by up to this fraction.",
        },
    )
    planned: float | None = None
    """The makespan to which percentages in `faults` refer; None: the result of `planned_makespan`."""

    def accepted_by(self, scheduler: str) -> SimulationConfig:
        """The same settings, with the fields of `policy` reset that a scheduler of this name does not accept."""
        from headrace.online.adapter import accepted_policy

        return replace(self, policy=accepted_policy(scheduler, self.policy))

    def __post_init__(self) -> None:
        for name, kind in (("policy", ReplanPolicy), ("execution", ExecutionPolicy)):
            if not isinstance(getattr(self, name), kind):
                raise wrong_argument(name, getattr(self, name), f"give an hr.{kind.__name__}(...)")
        for name in ("estimates", "faults"):
            if not isinstance(getattr(self, name), str):
                example = "kill=2@30%" if name == "faults" else "history"
                raise wrong_argument(name, getattr(self, name), f'give a text, such as "{example}"')
        if as_float(self.error) is None:
            raise wrong_argument("error", self.error, "give a number of at least 0 and below 1, such as 0.2")
        if self.planned is not None and as_float(self.planned) is None:
            raise wrong_argument("planned makespan", self.planned, "give a number of seconds, or None")
        if not 0.0 <= self.error < 1.0:
            raise UsageError(
                f"error is {self.error}", hint="use a share of at least 0 and below 1, such as 0.2"
            )
        if self.estimates not in ("user", "history", *LEARNING):
            try:
                parse_quality(self.estimates)
            except UsageError as error:
                error.hint = ESTIMATES
                raise
