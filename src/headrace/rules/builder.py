"""Rules built from Python. Every function returns the text of a rule, so that there is one meaning.

>>> rules = combine(on("FFT", hosts="lillith"), finish_by("6 h"), avoid("laptop", prefer=5))
>>> print(rules)
assert relationship requirement (
  (select task-assigned-proc-name from task where task-name = "FFT" or task-label = "FFT") in ("lillith"))
assert relationship requirement (
  (select task-finish-time from task) <= 21600 s)
assert relationship preference priority 5 (
  (select proc-task-count from proc where proc-name = "laptop") = 0)

Tasks are given by name ("FFT" for FFT.1, FFT.2 and so on) or by full name ("FFT.1"), one or several; hosts and sites
by name. A rule is a requirement, or with `prefer=priority` a preference. `name` is shown in messages and summaries.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from headrace.model.errors import UsageError
from headrace.model.units import quantity
from headrace.rules.show import quoted, show_number

Names: TypeAlias = str | Sequence[str]
Time: TypeAlias = float | str
"""Seconds, or text such as "2 h"."""


def require(condition: str, *, name: str = "") -> str:
    """A requirement with this condition, written in the rules language.

    >>> print(require("(select max(task-finish-time) from task) <= 2 h", name="short"))
    short: assert relationship requirement (
      (select max(task-finish-time) from task) <= 2 h)
    """
    return _relationship(condition, None, name)


def prefer(condition: str, priority: float = 1, *, name: str = "") -> str:
    """A preference for this condition, written in the rules language."""
    return _relationship(condition, priority, name)


def on(
    tasks: Names,
    hosts: Names | None = None,
    sites: Names | None = None,
    *,
    prefer: float | None = None,
    name: str = "",
) -> str:
    """The tasks run on one of these hosts, or at one of these sites.

    >>> print(on("FFT", sites=["uw", "ufmg"]))
    assert relationship requirement (
      (select task-site from task where task-name = "FFT" or task-label = "FFT") in ("uw", "ufmg"))
    """
    if (hosts is None) == (sites is None):
        raise UsageError("on() needs either hosts or sites", hint='on("FFT", hosts="lillith")')
    attribute, places = ("task-site", sites) if hosts is None else ("task-assigned-proc-name", hosts)
    assert places is not None
    selected = f"(select {attribute} from task where {_tasks(tasks)})"
    return _relationship(f"{selected} in ({_texts(places)})", prefer, name)


def avoid(hosts: Names, tasks: Names | None = None, *, prefer: float | None = None, name: str = "") -> str:
    """Nothing runs on these hosts, or none of these tasks."""
    if tasks is None:
        condition = f"(select proc-task-count from proc where {_is('proc-name', hosts)}) = 0"
    else:
        selected = f"(select task-assigned-proc-name from task where {_tasks(tasks)})"
        condition = f"{selected} not in ({_texts(hosts)})"
    return _relationship(condition, prefer, name)


def together(tasks: Names, *, at_site: bool = False, prefer: float | None = None, name: str = "") -> str:
    """All these tasks run on one host, or at one site.

    >>> print(together("FFT", at_site=True))
    assert relationship requirement (
      (select count(distinct task-site) from task where task-name = "FFT" or task-label = "FFT") <= 1)
    """
    attribute = "task-site" if at_site else "task-assigned-proc-id"
    return _relationship(
        f"(select count(distinct {attribute}) from task where {_tasks(tasks)}) <= 1", prefer, name
    )


def apart(tasks: Names, *, prefer: float | None = None, name: str = "") -> str:
    """No two of these tasks run on the same host."""
    return at_most(1, tasks=tasks, prefer=prefer, name=name)


def before(first: Names, second: Names, *, prefer: float | None = None, name: str = "") -> str:
    """The second tasks start when the first have finished, or later.

    >>> print(before("calibrate", "measure"))
    assert relationship requirement (
      (select task-finish-time from task where task-name = "calibrate" or task-label = "calibrate") <=
      (select task-start-time from task where task-name = "measure" or task-label = "measure"))
    """
    return _relationship(
        f"(select task-finish-time from task where {_tasks(first)}) <=\n"
        f"  (select task-start-time from task where {_tasks(second)})",
        prefer,
        name,
    )


def finish_by(time: Time, tasks: Names | None = None, *, prefer: float | None = None, name: str = "") -> str:
    """These tasks, or all, have finished at this time after the start."""
    return _relationship(f"{_every('task-finish-time', tasks)} <= {_time(time)}", prefer, name)


def start_after(
    time: Time, tasks: Names | None = None, *, prefer: float | None = None, name: str = ""
) -> str:
    """These tasks, or all, start at this time or later."""
    return _relationship(f"{_every('task-start-time', tasks)} >= {_time(time)}", prefer, name)


def at_most(
    count: int,
    *,
    tasks: Names | None = None,
    hosts: Names | None = None,
    at_once: bool = False,
    prefer: float | None = None,
    name: str = "",
) -> str:
    """At most `count` tasks on each host: of these tasks or of all, on these hosts or on all.

    Parameters
    ----------
    at_once
        Count the tasks that run at the same moment instead of those of the whole schedule.

    >>> print(at_most(10, hosts="server"))
    assert relationship requirement (
      (select count(*) from task where task-scheduled = 1 and task-assigned-proc-name = "server"
      group by task-assigned-proc-id) <= 10)
    """
    if count < 0 or count != int(count):
        raise UsageError(f"at_most({count}) needs a whole number of 0 or more")
    if not at_once:
        selected = f"from task where {_placed(tasks, hosts)}\n  group by task-assigned-proc-id"
        return _relationship(f"(select count(*) {selected}) <= {int(count)}", prefer, name)
    # As many tasks as ever run at once run at the start of one of them.
    both = [
        _placed(tasks, hosts, "a."),
        _placed(tasks, hosts, "b."),
        "a.task-assigned-proc-id = b.task-assigned-proc-id",
        "b.task-start-time <= a.task-start-time",
        "a.task-start-time < b.task-finish-time",
    ]
    where = " and\n  ".join(both)
    selected = f"from task a, task b where {where}\n  group by a.task-id"
    return _relationship(f"(select count(*) {selected}) <= {int(count)}", prefer, name)


def _placed(tasks: Names | None, hosts: Names | None, source: str = "") -> str:
    conditions = [f"{source}task-scheduled = 1"]
    if tasks is not None:
        conditions.append(f"({_tasks(tasks, source)})")
    if hosts is not None:
        conditions.append(_is(f"{source}task-assigned-proc-name", hosts))
    return " and ".join(conditions)


def minimize(
    function: str, *, max: float | str, min: float | str = 0, priority: float = 1, name: str = ""
) -> str:
    """A preference for small values of an expression of the rules language, scaled from `min` to `max`.

    >>> print(minimize("(select sum(task-cost) from task)", max=20, name="cheap"))
    cheap: assert value preference (
      opt-type = minimize, priority = 1, function = (select sum(task-cost) from task), min = 0, max = 20)
    """
    return _value("minimize", function, max, min, priority, name)


def maximize(
    function: str, *, max: float | str, min: float | str = 0, priority: float = 1, name: str = ""
) -> str:
    """A preference for large values of an expression of the rules language, scaled from `min` to `max`."""
    return _value("maximize", function, max, min, priority, name)


def combine(*rules: str) -> str:
    """Several rules, or texts of rules, as one text."""
    return "\n".join(rules)


def _value(goal: str, function: str, high: float | str, low: float | str, priority: float, name: str) -> str:
    limits = f"min = {_number(low)}, max = {_number(high)}"
    settings = f"opt-type = {goal}, priority = {_number(priority)}, function = {function}, {limits}"
    return f"{_label(name)}assert value preference (\n  {settings})"


def _relationship(condition: str, priority: float | None, name: str) -> str:
    importance = "requirement" if priority is None else f"preference priority {_number(priority)}"
    return f"{_label(name)}assert relationship {importance} (\n  {condition})"


def _label(name: str) -> str:
    if name and not re.fullmatch(r"[^\W\d]\w*(?:-\w+)*", name):
        raise UsageError(
            f"{name!r} cannot be the name of a rule", hint="letters, digits and single hyphens between them"
        )
    return f"{name}: " if name else ""


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else show_number(float(value))


def _time(value: Time) -> str:
    return f"{show_number(quantity(value, 'time'))} s"


def _every(attribute: str, tasks: Names | None) -> str:
    where = "" if tasks is None else f" where {_tasks(tasks)}"
    return f"(select {attribute} from task{where})"


def _tasks(names: Names, source: str = "") -> str:
    return f"{_is(f'{source}task-name', names)} or {_is(f'{source}task-label', names)}"


def _is(attribute: str, names: Names) -> str:
    texts = _texts(names)
    one = isinstance(names, str) or len(names) == 1
    return f"{attribute} = {texts}" if one else f"{attribute} in ({texts})"


def _texts(names: Names) -> str:
    given = [names] if isinstance(names, str) else list(names)
    if not given:
        raise UsageError("a rule needs at least one name", hint='such as "FFT"')
    for name in given:
        if "\n" in name:
            raise UsageError(f"{name!r} has a line break, which text in rules cannot have")
    return ", ".join(map(quoted, given))
