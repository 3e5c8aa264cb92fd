"""Figure 3 in small: the order of the strategies, and the bound over all of them."""

from __future__ import annotations

from headrace.reproductions.coscheduling_figure_3 import gains


def test_the_optimized_plan_leads_and_the_bound_holds() -> None:
    table = gains(slowdown=30.0, seed=1, seconds=1.0, jobs=300)
    bound = table.pop("upper bound")
    assert max(table.values()) <= bound
    assert table["optimized"] >= max(table["local"], table["equal load"], table["pull"])
    assert table["optimized"] > 0
    assert table["equal load"] < 0
