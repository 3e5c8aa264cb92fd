"""What rules say of a plan or of what happened, as commands print it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.commands.console import print_table
from headrace.model.errors import RuleBroken

if TYPE_CHECKING:
    from headrace.model.graph import Graph
    from headrace.model.plan import Plan
    from headrace.planners.rule_costs import RuleCost
    from headrace.rules.evaluate import Verdict
    from headrace.rules.tree import RuleSet


@dataclass(frozen=True)
class JudgedPlan:
    """Verdicts on a schedule, and what the rules cost."""

    file: str
    verdicts: list[Verdict]
    makespan: float
    costs: dict[str, RuleCost] | None = None

    def facts(self) -> dict[str, Any]:
        """For machines."""
        from headrace.report.rules import rules_json
        from headrace.rules.evaluate import score

        listed = rules_json(self.verdicts, self.makespan, self.costs)
        return {"rules_file": self.file, "rules": listed, "score": score(self.verdicts)}

    def require_kept(self, dropped: Collection[str] = ()) -> None:
        """
        Raises:
            RuleBroken: What happened breaks a requirement that the run has not left out.
        """
        broken = [v for v in self.verdicts if v.importance == "requirement" and not v.kept]
        for verdict in broken:
            if verdict.name not in dropped:
                raise RuleBroken(
                    f"what happened breaks {verdict.name} (line {verdict.line}): {verdict.first_miss}",
                    where=self.file,
                    hint="relax the rule, or plan with estimates closer to what happened",
                )

    def print(self) -> None:
        """A table with a line for each rule."""
        from headrace.report.rules import rule_rows

        print_table(*rule_rows(self.verdicts, self.makespan, self.costs))


def judge(rules: RuleSet, graph: Graph, plan: Plan, costs: dict[str, RuleCost] | None = None) -> JudgedPlan:
    """Judge a plan, or what happened, by rules."""
    from headrace.rules.evaluate import evaluate

    return JudgedPlan(rules.source, evaluate(rules, graph, plan.platform, plan), plan.makespan, costs)
