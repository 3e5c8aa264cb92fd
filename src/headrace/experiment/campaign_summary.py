"""Summary of a campaign: means over seeds, scheduler comparison, and plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headrace.experiment.campaign import Combination, Done
from headrace.experiment.diagram import Diagram
from headrace.formats.campaign_toml import Entry, Shape

_SIZES = ("shared", "private_size", "output_size")


class Group(NamedTuple):
    """The settings shared by the runs of one row, which differ only in the seed."""

    application: str
    grid: str
    scheduler: str
    events: str
    estimates: str
    faults: str


@dataclass(frozen=True)
class Summary:
    """Runs of one group over all seeds."""

    group: Group
    runs: int
    failed: int
    makespan: float | None
    """Mean; None if no run completed."""
    deviation: float | None
    relative: float | None
    """Mean ratio of the makespan to the best makespan of any scheduler with otherwise equal settings."""
    bytes_moved: float | None
    deciding: float | None

    @property
    def error(self) -> float | None:
        """The standard error of the mean makespan."""
        return None if self.deviation is None else self.deviation / float(self.runs - self.failed) ** 0.5


def summaries(done: Sequence[Done]) -> list[Summary]:
    """One summary per group, in the order of the campaign: O(runs)."""
    best: dict[tuple[object, ...], float] = {}
    groups: dict[Group, list[Done]] = {}
    for one in done:
        groups.setdefault(_group(one.run), []).append(one)
        if not one.outcome.error:
            rivals = _rivals(one.run)
            best[rivals] = min(best.get(rivals, np.inf), one.outcome.makespan)
    found = []
    for group, members in groups.items():
        good = [one for one in members if not one.outcome.error]
        relative = [
            one.outcome.makespan / least if (least := best[_rivals(one.run)]) > 0 else 1.0 for one in good
        ]
        times = np.array([one.outcome.makespan for one in good])
        found.append(
            Summary(
                group,
                len(members),
                len(members) - len(good),
                float(times.mean()) if good else None,
                float(times.std(ddof=1)) if len(good) > 1 else None,
                float(np.mean(relative)) if good else None,
                float(np.mean([one.outcome.bytes_moved for one in good])) if good else None,
                float(np.mean([one.outcome.deciding for one in good])) if good else None,
            )
        )
    return found


def _group(run: Combination) -> Group:
    return Group(run.application.name, run.grid.name, run.scheduler, run.events, run.estimates, run.faults)


def _rivals(run: Combination) -> tuple[object, ...]:
    return (run.application.name, run.grid.name, run.events, run.estimates, run.faults, run.seed)


def pictures(applications: Sequence[Entry], found: Sequence[Summary]) -> list[Diagram]:
    """A plot for each grid and setting, with a curve or colour for each scheduler.

    If the applications differ in one number only, it is the x axis; otherwise each application has its bars.
    """
    axis = _axis(applications)
    names = [entry.name for entry in applications]
    made = []
    settings = dict.fromkeys((s.group.grid, s.group.events, s.group.estimates, s.group.faults) for s in found)
    for setting in settings:
        rows: dict[str, dict[str, Summary]] = {}
        for s in found:
            if (s.group.grid, s.group.events, s.group.estimates, s.group.faults) == setting:
                rows.setdefault(s.group.scheduler, {})[s.group.application] = s
        order = names if axis is None else sorted(names, key=axis[1].__getitem__)
        made.append(
            Diagram(
                title=_title(setting),
                x_label="application" if axis is None else axis[0],
                y_label="makespan (s)",
                x=order if axis is None else [axis[1][name] for name in order],
                curves={
                    scheduler: [row[name].makespan if name in row else None for name in order]
                    for scheduler, row in rows.items()
                },
                errors={
                    scheduler: [row[name].error if name in row else None for name in order]
                    for scheduler, row in rows.items()
                },
                shape="bars" if axis is None else "lines",
            )
        )
    return made


def _axis(applications: Sequence[Entry]) -> tuple[str, dict[str, float]] | None:
    """The one option that varies and its value for each application, if that is a number."""
    keys = {key for entry in applications for key in entry.varied}
    if len(keys) != 1 or len(applications) < 2:
        return None
    (key,) = keys
    places: dict[str, float] = {}
    for entry in applications:
        value = entry.varied.get(key)
        number = value.a if isinstance(value, Shape) and value.name == "constant" else value
        if not isinstance(number, (int, float)) or isinstance(number, bool):
            return None
        places[entry.name] = float(number)
    stems = {entry.name.partition(f" {key}=")[0] for entry in applications}
    if len(stems) > 1 or len(set(places.values())) < len(places):
        return None
    return _scaled(key, places) if key in _SIZES else (key, places)


def _scaled(key: str, places: dict[str, float]) -> tuple[str, dict[str, float]]:
    """Sizes in the largest unit in which the largest size is at least 1."""
    largest = max(places.values())
    factor, unit = next(
        ((f, u) for f, u in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if largest >= f), (1.0, "B")
    )
    return f"{key} ({unit})", {name: value / factor for name, value in places.items()}


def _title(setting: tuple[str, str, str, str]) -> str:
    grid, events, estimates, faults = setting
    title = f"{grid}: planning events {events}, estimates {estimates}"
    return f"{title}, faults {faults}" if faults else title
