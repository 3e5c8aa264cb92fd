"""How often `best` finds the optimum of small problems: 200 seeded cases of up to 12 tasks on 3 hosts.

python -m bench.exact [CASES]
"""

from __future__ import annotations

import sys
import time

from bench.tools import print_rows
from headrace.planners.bounds import lower_bound
from headrace.planners.list.heft import Heft
from headrace.planners.search.best import Best
from headrace.testing.exact import proven_makespan, small_case


def main(cases: int = 200) -> None:
    matched = heft = tight = 0
    worst, began = 1.0, time.perf_counter()
    for seed in range(cases):
        problem = small_case(seed)
        lower, upper = proven_makespan(problem)
        found = Best(time=0.5).plan(problem).makespan
        assert lower * (1 - 1e-9) <= found
        assert lower_bound(problem) <= upper
        matched += found <= upper
        heft += Heft().plan(problem).makespan <= upper
        tight += lower_bound(problem) >= lower
        worst = max(worst, found / lower)
    row = (cases, matched, heft, tight, worst, time.perf_counter() - began)
    headers = ("cases", "best optimal", "heft optimal", "bound = optimum", "best / optimum, worst", "seconds")
    print_rows(headers, [row])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
