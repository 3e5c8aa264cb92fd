"""A plan carried out by the coordinator takes no longer than the plan replayed: cases kept apart from the benchmark."""

from __future__ import annotations

from bench.carried_out import CONTENTIONS, LIMIT, outcome
from bench.generated.relays import RelayShape, relay_case

CASES = 40
SHAPES: tuple[RelayShape, ...] = ("rounds", "mixed", "bag", "inputs", "stages")
"""The first two are in no benchmark; the others come with other seeds."""


def test_plans_are_carried_out_as_planned() -> None:
    found = []
    for k in range(CASES):
        case = relay_case(1000 + k, SHAPES[k % 5], CONTENTIONS[k % 2], graph=k // 10 % 2 == 1)
        found.append(outcome(*case, "heft"))
    late = [
        f"{o.name}: {o.planned:.1f} s replayed, {o.ratio:.3f} times that" for o in found if o.ratio > LIMIT
    ]
    assert not late, "\n".join(late)
