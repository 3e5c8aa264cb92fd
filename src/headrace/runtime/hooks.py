"""What a client does during a run besides observing its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.runtime.kept_files import Keeping


@dataclass(frozen=True)
class RunHooks:
    """Called in the thread that waits for the run."""

    measured: Callable[[str, Mapping[str, Any]], None] = lambda task, measured: None
    """With each finished task and what its worker reported, before the event."""
    check: Callable[[], None] = lambda: None
    """Several times a second; an error that it raises ends the run."""
    keeping: Keeping | None = None
    """Where workers keep what they make; None: nowhere."""


NO_HOOKS = RunHooks()
"""Nothing besides."""
