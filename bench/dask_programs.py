"""Programs as users of Dask write them; each returns a value that can be compared.

Those of `PROGRAMS` are the ones of docs/benchmarks.md. `OTHERS` were kept aside while the placement was worked on.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.dask_paced import spin, spin_list

Program = Callable[[Any], Any]
UNIT = 0.01
"""CPU seconds of an ordinary task."""


def diamond(client: Any) -> Any:
    """Delayed: three forks of seven tasks and joins, one after another."""
    from dask import delayed

    work = delayed(spin, pure=False)
    joined = work(UNIT)
    for _ in range(3):
        joined = work(UNIT, *[work(2 * UNIT, joined) for _ in range(7)])
    return joined.compute(scheduler=client)


def stencil(client: Any) -> Any:
    """Array: steps of a stencil on blocks with borders, then a Fourier transform of the rows."""
    import dask.array as da

    x = da.from_array(np.linspace(0.0, 1.0, 1200 * 1200).reshape(1200, 1200), chunks=(300, 300))
    for _ in range(3):
        x = x.map_overlap(_relax, depth=1, boundary="periodic", dtype=float)
    spectrum = da.fft.fft(x.rechunk((100, 1200)), axis=1)
    return abs(spectrum).sum().compute(scheduler=client)


def _relax(block: np.ndarray) -> np.ndarray:
    for _ in range(3):
        block = (
            np.roll(block, 1, 0) + np.roll(block, -1, 0) + np.roll(block, 1, 1) + np.roll(block, -1, 1)
        ) * 0.25 + np.sin(block) * 1e-3
    return block


def group_by(client: Any) -> Any:
    """Data frame: a column computed, a shuffle by key, and a function of each group."""
    import dask.dataframe as dd
    import pandas as pd

    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"key": rng.integers(0, 200, 120_000), "x": rng.random(120_000)})
    table = dd.from_pandas(frame, npartitions=16)
    table = table.map_partitions(_with_column)
    grouped = table.groupby("key").apply(_spread, meta=("spread", "f8"))
    return grouped.compute(scheduler=client).sort_index().to_numpy()


def _with_column(part: Any) -> Any:
    x = part["x"].to_numpy()
    for _ in range(20):
        x = np.sqrt(np.sin(x) ** 2 + np.cos(x))
    return part.assign(y=x)


def _spread(group: Any) -> float:
    ordered = np.sort(group["y"].to_numpy())
    return float(ordered[-1] - ordered[0]) if len(ordered) else 0.0


def fold(client: Any) -> Any:
    """Bag: 20 partitions, a costly function of each element, and a fold."""
    import dask.bag as db

    rng = random.Random(3)
    bag = db.from_sequence([rng.uniform(0.2, 1.0) * UNIT for _ in range(80)], npartitions=20)
    return round(bag.map(spin).fold(_plus, initial=0.0).compute(scheduler=client), 9)


def _plus(a: float, b: float) -> float:
    return a + b


def futures(client: Any) -> Any:
    """Futures: uneven tasks, mapped, then reduced in pairs."""
    rng = random.Random(5)
    sizes = [UNIT * rng.paretovariate(1.5) for _ in range(30)]
    row = client.map(spin, sizes)
    while len(row) > 1:
        row = [client.submit(_join, *row[i : i + 2]) for i in range(0, len(row), 2)]
    return round(row[0].result(), 9)


def _join(*values: float) -> float:
    spin(UNIT / 2)
    return sum(values)


PROGRAMS: dict[str, Program] = {
    "delayed diamond": diamond,
    "array stencil and FFT": stencil,
    "data frame group-by": group_by,
    "bag fold": fold,
    "map-reduce of uneven futures": futures,
}


def layers(client: Any) -> Any:
    """Delayed: a random layered graph."""
    from dask import delayed

    rng = random.Random(11)
    work = delayed(spin, pure=False)
    row = [work(UNIT * rng.uniform(0.5, 2)) for _ in range(6)]
    for _ in range(5):
        row = [work(UNIT * rng.uniform(0.5, 2), *rng.sample(row, 2)) for _ in range(6)]
    return delayed(sum)(row).compute(scheduler=client)


def product(client: Any) -> Any:
    """Array: a product of blocked matrices."""
    import dask.array as da

    a = da.from_array(np.linspace(0.0, 1.0, 900 * 900).reshape(900, 900), chunks=(300, 300))
    return a.dot(a.T).sum().compute(scheduler=client)


def words(client: Any) -> Any:
    """Bag: partitions of unequal size, and a reduction in a tree."""
    import dask.bag as db

    rng = random.Random(17)
    parts = [[UNIT * rng.uniform(0.1, 0.4) for _ in range(rng.randint(1, 12))] for _ in range(24)]
    return round(
        db.from_sequence(parts, npartitions=24).map(spin_list).flatten().sum().compute(scheduler=client), 9
    )


def completed(client: Any) -> Any:
    """Futures: each result that arrives starts another task."""
    from distributed import as_completed

    first = client.map(spin, [UNIT * (1 + k % 3) for k in range(12)], pure=False)
    arriving = as_completed(first, loop=client.loop)
    seen, more = 0.0, 24
    for future in arriving:
        seen += future.result()
        if more:
            arriving.add(client.submit(spin, UNIT * (1 + more % 4), pure=False))
            more -= 1
    return round(seen, 9)


def merged(client: Any) -> Any:
    """Data frame: two tables joined by a key, and a mean."""
    import dask.dataframe as dd
    import pandas as pd

    rng = np.random.default_rng(9)
    left = dd.from_pandas(
        pd.DataFrame({"k": rng.integers(0, 5000, 60_000), "a": rng.random(60_000)}), npartitions=8
    )
    right = dd.from_pandas(pd.DataFrame({"k": np.arange(5000), "b": rng.random(5000)}), npartitions=4)
    joined = left.map_partitions(_costly).merge(right, on="k")
    return round(float((joined.a * joined.b).sum().compute(scheduler=client)), 6)


def _costly(part: Any) -> Any:
    spin(2 * UNIT)
    return part


OTHERS: dict[str, Program] = {
    "delayed layers": layers,
    "array product": product,
    "bag of uneven partitions": words,
    "futures as completed": completed,
    "data frame join": merged,
}
