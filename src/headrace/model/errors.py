"""Errors shown to users: what is wrong, where, and what to try."""

from __future__ import annotations


class HeadraceError(Exception):
    """Base class of all errors that Headrace raises deliberately.

    >>> str(HeadraceError("speed is -1", where="lab.toml: host n1", hint="give a speed above 0"))
    'lab.toml: host n1: speed is -1 (try: give a speed above 0)'
    """

    exit_code = 2

    def __init__(self, problem: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.problem}" if self.where else self.problem
        return f"{text} (try: {self.hint})" if self.hint else text

    def at(self, where: str) -> HeadraceError:
        """The same error, with `where` prepended to its location."""
        self.where = f"{where}: {self.where}" if self.where else where
        return self


class UsageError(HeadraceError):
    """The command or call itself is wrong: an unknown name, conflicting options."""


class BadFile(HeadraceError):
    """An external file cannot be read: missing, too large, corrupt, or malformed."""


class BadProgram(HeadraceError):
    """A program is inconsistent: a cycle, two producers of one item, a negative size."""


class BadPlatform(HeadraceError):
    """A platform is inconsistent: a negative speed, a link to an unknown site, no route."""


class BadPlan(HeadraceError):
    """A plan breaks the rules of its program or platform."""


class BadRules(HeadraceError):
    """Rules that cannot be read, or make no sense: the place, the line with a caret below, and what was expected.

    >>> error = BadRules("unknown attribute", where="lab.rules", line=2, column=3, excerpt="a b", width=1)
    >>> print(error)
    lab.rules: line 2, column 3: unknown attribute
        a b
          ^
    """

    def __init__(
        self,
        problem: str,
        *,
        where: str = "",
        hint: str = "",
        line: int = 0,
        column: int = 0,
        excerpt: str = "",
        indent: int | None = None,
        width: int = 1,
        others: tuple[BadRules, ...] = (),
    ) -> None:
        super().__init__(problem, where=where, hint=hint)
        self.line = line
        """From 1; 0: the file as a whole."""
        self.column = column
        self.excerpt = excerpt
        """The text of the line, or the part of it around the column."""
        self.indent = column - 1 if indent is None else indent
        """Where in the excerpt the caret stands."""
        self.width = width
        self.others = others
        """The errors of further rules."""

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}" if self.line else ""
        text = ": ".join(part for part in (self.where, place, self.problem) if part)
        text = f"{text} (try: {self.hint})" if self.hint else text
        if self.excerpt:
            text += f"\n    {self.excerpt}\n    {' ' * self.indent}{'^' * self.width}"
        return "\n".join([text, *map(str, self.others)])


class NoPlan(HeadraceError):
    """No feasible plan exists, or this scheduler cannot find one."""

    exit_code = 3


class TaskFailed(HeadraceError):
    """A task of a real run raised an exception, or its command exited with a non-zero status."""

    exit_code = 1


class PoisonTask(TaskFailed):
    """A task ended the worker process that executed it, and did so again on another: it is not tried any more."""


class NoResult(HeadraceError, KeyError):
    """A run has no result of this name: there is none in the program, or the run failed before it was made."""


class ProgramChanged(HeadraceError):
    """A run cannot be resumed, because its program or inputs are not those that it was started with."""


class RunStalled(HeadraceError):
    """A run could not go on: nothing ran and nothing moved for a long time."""

    exit_code = 3


class ClusterRestarted(HeadraceError):
    """Another client restarted the cluster, and with it the run was forgotten."""

    exit_code = 3


class RuleBroken(HeadraceError):
    """What happened in a run, real or simulated, breaks a requirement of its rules."""

    exit_code = 1


class ClusterLost(HeadraceError):
    """The scheduler of a cluster has died, or cannot be reached any more."""

    exit_code = 3


class WorkerStartFailed(HeadraceError):
    """Workers could not be started on a host: it is not reachable, does not let you in, or lacks headrace."""


class RunStopped(HeadraceError):
    """A run was interrupted by the user."""

    exit_code = 130
