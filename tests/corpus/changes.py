"""Answers that differ, because a fault was repaired, and why.

The recorded program took every item from the nearest copy, whatever the plan said; the adapter to the present one asks
for that (`routes="nearest"`), so that runs can be compared. That plans are now carried out with their own sources is
tested in `simulator/events/test_carried_out.py`.
"""

from __future__ import annotations

CHANGES: frozenset[str] = frozenset(
    {
        # Tasks that are planned for the same moment on one host keep the order of the plan; before, the one with the
        # lower number went first. Which inputs are sent first, and which core is used, follows from that.
        "run/54-random-sites-none-none/10.4-dheft",
        *(f"run/atacseq-{links}/{name}" for links in ("none", "fifo", "fair") for name in ("heft", "dheft")),
    }
)
