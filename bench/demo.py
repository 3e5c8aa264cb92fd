"""The demo's figures, several times.

python -m bench.demo
"""

from __future__ import annotations

from bench.tools import print_rows
from headrace.commands.demo import run_demo

REPEATS = 5


def main() -> None:
    rows = []
    for number in range(REPEATS):
        demo = run_demo(lambda line: None)
        engine, planned = demo.rows()
        rows.append(
            (
                number + 1,
                *(engine.makespan, engine.bound, engine.ratio),
                *(planned.makespan, planned.bound, planned.ratio),
                demo.speedup,
            )
        )
        assert demo.same
    headers = ("run", "Dask s", "bound s", "ratio", "plan s", "bound s", "ratio", "Dask / plan")
    print_rows(headers, rows)


if __name__ == "__main__":
    main()
