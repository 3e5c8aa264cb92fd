"""Make schedulers from a name, a class or an object; planners are wrapped so that they can control a run."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from headrace.core.replan import Replan
from headrace.core.replan_policy import ReplanPolicy
from headrace.core.scheduler import Planner, Scheduler, WakeConditions
from headrace.model.constraints import Constraints
from headrace.model.errors import UsageError
from headrace.planners.registry import make

POLICY_FIELDS = tuple(each.name for each in fields(ReplanPolicy))
ACCEPTED = {
    "dheft": ("planning", "pause", "when_impossible"),
    "lheft": ("when_impossible",),
    "workqueue": ("when_impossible",),
}
"""Fields of `ReplanPolicy` that online schedulers accept; planners accept all of them."""


def is_scheduler(made: object) -> bool:
    """Whether an object decides while a program runs."""
    return callable(getattr(made, "react", None))


def make_scheduler(
    scheduler: str | Planner | Scheduler,
    policy: ReplanPolicy | None = None,
    seed: int = 0,
    **options: Any,
) -> Scheduler:
    """Make a scheduler that can control a run.

    Args:
        scheduler: A name that `headrace schedulers` lists, a class in a file (`file.py:Class`), or an object.
        policy: When a planner replans.
        seed: Random seed of a planner.
        options: Passed to the constructor.

    Raises:
        UsageError: The scheduler is unknown, or does not accept the policy or an option.

    >>> make_scheduler("heft").name, make_scheduler("lheft").name
    ('heft', 'lheft')
    >>> make_scheduler("lheft", ReplanPolicy(events="S1"))
    Traceback (most recent call last):
        ...
    headrace.model.errors.UsageError: 'lheft' does not accept events (try: it accepts when_impossible)
    """
    policy = policy or ReplanPolicy()
    if isinstance(scheduler, str) and scheduler in ACCEPTED:
        _refuse(scheduler, policy, ACCEPTED[scheduler])
        given = {name: getattr(policy, name) for name in ACCEPTED[scheduler]}
        return _as_scheduler(make(scheduler, **given, **options), scheduler)
    made = make(scheduler, **options) if isinstance(scheduler, str) else scheduler
    if is_scheduler(made):
        _refuse(getattr(made, "name", str(scheduler)), policy, ())
        return _as_scheduler(made, str(scheduler))
    if not isinstance(made, Planner):
        raise UsageError(
            f"{made!r} is neither a planner nor a scheduler",
            hint="define `name` and a method plan(problem) or react(view, events)",
        )
    return Replan(made, policy, seed)


def obeying(scheduler: Scheduler, constraints: Constraints | None) -> Scheduler:
    """The scheduler, told to obey constraints on the tasks and hosts of the whole run; None: no constraints.

    Order, releases and deadlines are not its business: run it on the `bound_graph` of the constraints.

    Raises:
        UsageError: The scheduler does not know constraints.

    >>> obeying(make_scheduler("lheft"), None).name
    'lheft'
    """
    if constraints is None:
        return scheduler
    obey = getattr(scheduler, "obey", None)
    if obey is None:
        raise UsageError(
            f"{scheduler.name!r} does not obey constraints on hosts",
            hint="use dheft, lheft, workqueue or a planner",
        )
    obey(constraints)
    return scheduler


def is_obeying(scheduler: Scheduler) -> bool:
    """Whether the scheduler was told to obey constraints.

    >>> is_obeying(obeying(make_scheduler("heft"), Constraints.none(3, 2))), is_obeying(make_scheduler("lheft"))
    (True, False)
    """
    return getattr(scheduler, "constraints", None) is not None


def _as_scheduler(made: Any, what: str) -> Scheduler:
    if not isinstance(getattr(made, "wake", None), WakeConditions):
        raise UsageError(
            f"{what} has no wake conditions",
            hint="set its attribute `wake` to WakeConditions(...), for example EVERY_EVENT",
        )
    if not isinstance(getattr(made, "name", None), str):
        raise UsageError(f"{what} has no name", hint="set its attribute `name`")
    scheduler: Scheduler = made
    return scheduler


def _refuse(name: str, policy: ReplanPolicy, accepted: tuple[str, ...]) -> None:
    default = ReplanPolicy()
    others = [f for f in POLICY_FIELDS if f not in accepted and getattr(policy, f) != getattr(default, f)]
    if others:
        raise UsageError(
            f"{name!r} does not accept {', '.join(others)}",
            hint=f"it accepts {', '.join(accepted)}" if accepted else "omit it",
        )


def accepted_policy(scheduler: str, policy: ReplanPolicy) -> ReplanPolicy:
    """The policy with the fields reset that a scheduler of this name does not accept.

    >>> accepted_policy("dheft", ReplanPolicy(subset=9, planning=0.5)) == ReplanPolicy(planning=0.5)
    True
    """
    default = ReplanPolicy()
    dropped = [f for f in POLICY_FIELDS if f not in policy_fields(scheduler)]
    return replace(policy, **{name: getattr(default, name) for name in dropped})


def policy_fields(scheduler: str) -> tuple[str, ...]:
    """The fields of `ReplanPolicy` that a scheduler of this name accepts.

    >>> policy_fields("lheft"), policy_fields("dheft"), "subset" in policy_fields("minmin")
    (('when_impossible',), ('planning', 'pause', 'when_impossible'), True)
    """
    if scheduler in ACCEPTED:
        return ACCEPTED[scheduler]
    return () if is_scheduler(make(scheduler)) else POLICY_FIELDS
