"""Size limits of generated programs and grids, checked before anything is generated."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.experiment.generate import SweepSpec
from headrace.experiment.grids import INTERVAL, GridSpec
from headrace.formats.campaign_toml import Entry, Value
from headrace.model.errors import UsageError

MAX_TASKS = 1_000_000
MAX_USES = 20_000_000
"""Maximum number of uses of files by tasks."""
MAX_HOSTS = 100_000
MAX_STEPS = 20_000_000
"""Maximum total number of values in the series of a grid."""
MAX_EVENTS = 1_000_000
_DATAFLOW = {"iterations": 10, "pieces": 64, "blocks": 16, "streams": 2}
"""Default values of the parameters that determine the size of task graphs."""


def require_sweep_size(spec: SweepSpec) -> None:
    """Reject sweeps that exceed the limits.

    >>> require_sweep_size(SweepSpec(tasks=10**9))
    Traceback (most recent call last):
        ...
    headrace.model.errors.UsageError: sweep: 1000000000 tasks, more than 1000000 (try: give smaller numbers)
    """
    _limit("sweep", "tasks", spec.tasks, MAX_TASKS)
    uses = spec.tasks * (spec.reads + spec.private + spec.outputs) + spec.files
    _limit("sweep", "uses of files", uses, MAX_USES)
    _limit("sweep", "run times", spec.tasks * spec.architectures, MAX_USES)


def require_graph_size(entry: Entry) -> None:
    """Reject task graphs (jacobi, fft, matmul) that exceed the limits."""
    number = _whole(entry.options)
    tasks, uses = {
        "jacobi": (number["iterations"] * number["pieces"], 5 * number["iterations"] * number["pieces"]),
        "fft": (number["pieces"] * number["pieces"].bit_length() * 4, 0),
        "matmul": (number["blocks"] ** 2, 2 * number["blocks"] ** 3 * number["streams"]),
    }[entry.form]
    _limit(entry.form, "tasks", tasks, MAX_TASKS)
    _limit(entry.form, "uses of files", uses, MAX_USES)


def _whole(options: Mapping[str, Value]) -> dict[str, int]:
    given = {key: value for key, value in options.items() if isinstance(value, int)}
    return {key: given.get(key, default) for key, default in _DATAFLOW.items()}


def require_grid_size(spec: GridSpec) -> None:
    """Reject grids that exceed the limits."""
    hosts = sum(cluster.hosts for cluster in spec.clusters)
    _limit("grid", "hosts", hosts, MAX_HOSTS)
    series = sum(
        c.hosts * (c.load.series != "stable") + (c.traffic.series != "stable") for c in spec.clusters
    )
    _limit("grid", "values of series", series * spec.until / INTERVAL, MAX_STEPS)
    if spec.up is not None:
        _limit("grid", "events", 2 * hosts * spec.until / (spec.up + spec.down), MAX_EVENTS)


def _limit(where: str, what: str, count: float, most: int) -> None:
    if count > most:
        raise UsageError(f"{count:.0f} {what}, more than {most}", where=where, hint="give smaller numbers")
