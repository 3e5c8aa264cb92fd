"""Good rules: texts that tests start from, and a generator of further ones."""

from __future__ import annotations

import random

GOOD = """
-- comments, names, SQL
fft-on-lillith: assert relationship requirement (
  (select task-assigned-proc-id from task where task-name = "FFT") =
  (select proc-id from proc where proc-name = "lillith"))
quiet-machines: assert relationship requirement (
  (select proc-task-list from proc where proc_utilization > 3) = unknown);
early-picture: assert relationship preference priority 5 (
  (select task-finish-time from task where task-name = 'preview') <=
  0.5 * (select max(task-finish-time) from task))
ASSERT preference order ((select task-scheduled from task t order by task-path-length desc, t.task-id), >=)
assert value preference (opt-type = minimize, priority = 10,
  function = assert relationship preference (
    2 * (select proc-finish-time from proc where proc-name = "norge") =
    (select proc-finish-time from proc where proc-name = "oddvar"))
  min = 0, max = 1)
assert value preference (opt-type = minimize priority = 10 min = 0 max = 30 min
  function = absolute_value((select sum(task-exec-time) from task) - 2 * 5 min))
assert value requirement (function = (select sum(task-cost) from task), max = 20)
join: assert relationship requirement (
  (select count(distinct a.task-assigned-proc-id) from task a join dep on a.task-id = dep-from, task b
   where b.task-id = dep-to and not (dep-size < 500 MB or b.task-level between 1 and 3)
   group by dep-name having max(dep-size) > "1 GB") <= 2)
label: assert relationship requirement (
  (select task-site from task where label-region like 'eu%' and label-weight > 3 and
   task-id not in (select dep-from from dep where dep-to <> task-id) and task-kind is not null) in ("uw", "ufmg"))
"""

ATTRIBUTES = ["task-start-time", "task-exec-time", "task-work", "task-finish-time"]
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]


class Generator:
    """Random rules with types that fit, from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self, count: int) -> str:
        return "\n".join(self.rule() for _ in range(count))

    def rule(self) -> str:
        kind = self.random.choice(["relationship", "ordering", "value"])
        importance = self.random.choice(["requirement", "preference"])
        if kind == "relationship":
            return f"assert {kind} {importance} ({self.condition(2, top=True)})"
        if kind == "ordering":
            key = self.random.choice(ATTRIBUTES)
            return f"assert {importance} {kind} ((select {key} from task order by {self.row(1)} desc), <=)"
        if importance == "requirement":
            return f"assert value requirement ({self.function()})"
        goal = self.random.choice(["minimize", "maximize"])
        return f"assert value preference (opt-type = {goal}, {self.function()})"

    def function(self) -> str:
        return (
            f"function = 1 s * {self.random.randrange(9)} + {self.time(2, True)}, max = {self.time(1, True)}"
        )

    def condition(self, depth: int, top: bool = False) -> str:
        choice = self.random.randrange(8 if depth else 4)
        left, right = self.time(depth, top), self.time(0, top)
        if choice == 0:
            return f"{left} {self.random.choice(['', 'not '])}between {right} and {self.time(0, top)}"
        if choice == 1:
            return f"{left} {self.random.choice(['', 'not '])}in ({right}, 7 s, 2)"
        if choice == 2:
            return f"{left} is {self.random.choice(['', 'not '])}unknown"
        if choice == 5:
            return f"not ({self.condition(depth - 1, top)})"
        if choice in (6, 7):
            word = " and " if choice == 6 else " or "
            parts = [f"({self.condition(depth - 1, top)})" for _ in range(2)]
            return word.join([*parts, self.condition(0, top)])
        return f"{left} {self.random.choice(COMPARISONS)} {right}"

    def time(self, depth: int, top: bool) -> str:
        """An expression that is a time: with selects at the top, with columns within a select."""
        choice = self.random.randrange(6 if depth else 2)
        if choice == 0:
            return self.random.choice(["3", "2.5 h", "- 4", ".5", "1e3 ms"])
        if choice == 2:
            op = self.random.choice("+-")
            return f"({self.time(depth - 1, top)} {op} {self.time(depth - 1, top)})"
        if choice == 3:
            return f"abs({self.time(depth - 1, top)} - {self.time(depth - 1, top)})"
        if choice == 4:
            return f"{self.time(depth - 1, top)} * 2"
        return self.select(depth) if top else self.random.choice(ATTRIBUTES)

    def select(self, depth: int) -> str:
        where = f" where {self.condition(depth - 1)}" if depth > 0 else ""
        if self.random.random() < 0.5:
            name = self.random.choice(["min", "max", "sum", "avg"])
            group = self.random.choice(["", " group by task-kind"])
            return f"(select {name}({self.row(depth - 1)}) from task{where}{group})"
        return f"(select {self.row(depth - 1)} from task{where})"

    def row(self, depth: int) -> str:
        return self.time(max(depth, 0), top=False)
