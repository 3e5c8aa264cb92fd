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
        rows.append((number + 1, demo.bound, engine[1], engine[2], planned[1], planned[2], demo.speedup))
        assert demo.same
    headers = ("run", "bound s", "Dask s", "Dask / bound", "plan s", "plan / bound", "Dask / plan")
    print_rows(headers, rows)


if __name__ == "__main__":
    main()
