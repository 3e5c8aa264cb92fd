"""Planning interval and horizon: intervals adapt to the deviation of the run from the prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from headrace.core.state import TRANSFERS

if TYPE_CHECKING:
    from headrace.core.view import RunView

GROW, SHRINK = 1.25, 0.5
"""Factors applied to the interval after a good prediction and after a bad one."""
LEAST, MOST = 0.25, 64.0
"""Bounds of the interval, as multiples of the first interval."""
MEMORY = 0.3
"""Weight of the latest observation in the trust in a resource; earlier ones decay by 1 - MEMORY each."""
FAR, NEAR = 4.0, 0.25
"""Bounds of a tuned horizon, in intervals; the first value is the initial one."""


class Running(NamedTuple):
    """A task that runs on a host."""

    task: int
    host: int


class Moving(NamedTuple):
    """An item in flight to a place; `link` is the narrowest link of its predicted route."""

    item: int
    target: int
    link: int


SubTask: TypeAlias = Running | Moving


class ReplanInterval:
    """The time between two plans (S1: constant, S2: by deviation, S3: with weights) and the horizon.

    A prediction lists the sub-tasks (computations on hosts and transfers on links) that should be active at a given
    time. The deviation is the share of these that are not active then. With S3 each is weighted by the trust in its
    resource, which is an exponentially weighted mean of its share of correct predictions, so that unpredictable
    resources have little influence.
    """

    def __init__(
        self, events: Literal["S1", "S2", "S3", "once"], threshold: float, horizon: float | Literal["tuned"]
    ) -> None:
        self.events = events
        self.threshold = threshold
        self.tuned = horizon == "tuned"
        self.reach = FAR if horizon == "tuned" else float(horizon)
        """How far beyond the next planning event tasks are dispatched, in intervals."""
        self.seconds = 0.0
        self.trust: dict[tuple[str, int], float] = {}
        """Trust in predictions for each resource, by ("host" or "link", number)."""
        self._first = 0.0

    def begin(self, interval: float) -> None:
        """Set the first interval; later ones are bounded relative to it."""
        self.seconds = self._first = interval

    def compare(self, view: RunView, predicted: list[SubTask]) -> None:
        """Compare a prediction for the present time with the run: lengthen the interval slowly or shorten it fast."""
        if self.events not in ("S2", "S3") or not predicted:
            return
        if self.deviation(view, predicted) > self.threshold:
            self.seconds = max(SHRINK * self.seconds, LEAST * self._first)
        else:
            self.seconds = min(GROW * self.seconds, MOST * self._first)

    def deviation(self, view: RunView, predicted: list[SubTask]) -> float:
        """The share of wrong predictions, weighted with S3; also updates the trust in each resource."""
        right: dict[tuple[str, int], list[bool]] = {}
        for sub_task, was_right in zip(predicted, _came_true(view, predicted), strict=True):
            right.setdefault(_resource(sub_task), []).append(was_right)
        wrong = total = 0.0
        for resource in sorted(right):
            trust = self.trust.get(resource, 1.0)
            weight = trust if self.events == "S3" else 1.0
            wrong += weight * right[resource].count(False)
            total += weight * len(right[resource])
            self.trust[resource] = (1.0 - MEMORY) * trust + MEMORY * float(np.mean(right[resource]))
        return wrong / total if total > 0 else 0.0

    def tune(self, ran_dry: bool) -> None:
        """Adapt the horizon before planning: extend it if a host ran out of work, else shorten it a little."""
        if self.tuned:
            self.reach = min(FAR, 2.0 * self.reach) if ran_dry else max(NEAR, 0.8 * self.reach)


def _resource(sub_task: SubTask) -> tuple[str, int]:
    return ("host", sub_task.host) if isinstance(sub_task, Running) else ("link", sub_task.link)


def _came_true(view: RunView, predicted: list[SubTask]) -> list[bool]:
    """Whether each sub-task is active where it was predicted."""
    state = view.state
    live = state.live_transfers[: int(state.counters[TRANSFERS])]
    moving = set(zip(state.transfer_item[live].tolist(), state.transfer_target[live].tolist(), strict=True))
    return [
        sub_task.host in (int(state.run_host[sub_task.task]), int(state.duplicate_host[sub_task.task]))
        if isinstance(sub_task, Running)
        else (sub_task.item, sub_task.target) in moving
        for sub_task in predicted
    ]
