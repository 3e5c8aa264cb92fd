"""The three relations that rules speak about, and the attributes of each.

A schedule is seen as three relations: `task` (a row for each task), `proc` (a row for each host, whatever its number of
cores) and `dep` (a row for each item that one task writes and another reads). Attributes that depend on the schedule
are UNKNOWN while a partial schedule does not determine them.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.rules.tree import RelationName, Type


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    type: Type
    unit: str
    meaning: str
    scheduled: bool = False
    """Depends on the schedule; other attributes are known before planning."""


def _relation(*attributes: Attribute) -> dict[str, Attribute]:
    return {attribute.name: attribute for attribute in attributes}


LABEL = "label-"
"""`label-region` is the user's label `region` of a task, whatever its name: text, or a number where it is compared with
one; UNKNOWN for tasks without that label."""

RELATIONS: dict[RelationName, dict[str, Attribute]] = {
    "task": _relation(
        Attribute("task-id", Type.TASK, "", "number of the task in its program, from 0"),
        Attribute("task-name", Type.TEXT, "", "name without its number: FFT for FFT.3, FFT_3 and FFT3"),
        Attribute("task-label", Type.TEXT, "", "full name, unique in the program"),
        Attribute("task-kind", Type.TEXT, "", "what the task runs: its function, command or category"),
        Attribute(
            "task-level", Type.NUMBER, "", "longest path, in dependencies, from a task without predecessors"
        ),
        Attribute(
            "task-path-length", Type.TIME, "s", "longest path to an output: mean run times and transfer times"
        ),
        Attribute("task-cores", Type.NUMBER, "", "cores of one host that the task occupies"),
        Attribute(
            "task-memory", Type.SIZE, "B", "memory of its host that the task needs; UNKNOWN: not given"
        ),
        Attribute("task-work", Type.TIME, "s", "run time on a host of speed 1"),
        Attribute("task-input-size", Type.SIZE, "B", "bytes that the task reads"),
        Attribute("task-output-size", Type.SIZE, "B", "bytes that the task writes"),
        Attribute("task-release", Type.TIME, "s", "earliest start that the program allows"),
        Attribute("task-deadline", Type.TIME, "s", "latest finish that the program allows; UNKNOWN: none"),
        Attribute("task-scheduled", Type.NUMBER, "", "1 if the task has a host, 0 if not", scheduled=True),
        Attribute("task-assigned-proc-id", Type.PROC, "", "proc-id of the task's host", scheduled=True),
        Attribute("task-assigned-proc-name", Type.TEXT, "", "proc-name of the task's host", scheduled=True),
        Attribute("task-site", Type.TEXT, "", "site of the task's host", scheduled=True),
        Attribute(
            "task-exec-time",
            Type.TIME,
            "s",
            "run time on its host; mean over hosts until it has one",
            scheduled=True,
        ),
        Attribute("task-start-time", Type.TIME, "s", "planned start", scheduled=True),
        Attribute("task-finish-time", Type.TIME, "s", "planned finish", scheduled=True),
        Attribute("task-cost", Type.MONEY, "", "price of its host for the run time", scheduled=True),
        Attribute("task-energy", Type.ENERGY, "J", "watts of its host times the run time", scheduled=True),
    ),
    "proc": _relation(
        Attribute("proc-id", Type.PROC, "", "number of the host in its platform, from 0"),
        Attribute("proc-name", Type.TEXT, "", "name of the host"),
        Attribute("proc-site", Type.TEXT, "", "site of the host"),
        Attribute("proc-speed", Type.NUMBER, "", "speed of one core, without load"),
        Attribute("proc-cores", Type.NUMBER, "", "number of cores"),
        Attribute("proc-memory", Type.SIZE, "B", "memory; UNKNOWN: not given"),
        Attribute("proc-utilization", Type.NUMBER, "%", "share of each core used by others"),
        Attribute("proc-price", Type.MONEY, "per hour", "price of the host for an hour of one core"),
        Attribute("proc-watts", Type.POWER, "W", "power that one busy core draws"),
        Attribute(
            "proc-total-running-time", Type.TIME, "s", "sum of the run times of its tasks", scheduled=True
        ),
        Attribute(
            "proc-finish-time", Type.TIME, "s", "last finish; 0 if the host has no task", scheduled=True
        ),
        Attribute("proc-task-count", Type.NUMBER, "", "number of its tasks", scheduled=True),
        Attribute(
            "proc-task-list", Type.TASKS, "", "its tasks in order of start; UNKNOWN: none", scheduled=True
        ),
        Attribute("proc-cost", Type.MONEY, "", "price of the run times of its tasks", scheduled=True),
        Attribute("proc-energy", Type.ENERGY, "J", "energy of the run times of its tasks", scheduled=True),
    ),
    "dep": _relation(
        Attribute("dep-from", Type.TASK, "", "task-id of the task that writes the item"),
        Attribute("dep-to", Type.TASK, "", "task-id of a task that reads the item"),
        Attribute("dep-name", Type.TEXT, "", "name of the item"),
        Attribute("dep-size", Type.SIZE, "B", "bytes of the item"),
        Attribute(
            "non-local-comm-time",
            Type.TIME,
            "s",
            "time to send the item between the two hosts if no link is busy; 0 at the same place; mean over pairs of "
            "hosts until both tasks have a host",
            scheduled=True,
        ),
    ),
}

SCHEDULED = frozenset(a.name for known in RELATIONS.values() for a in known.values() if a.scheduled)
"""Attributes that depend on the schedule."""
