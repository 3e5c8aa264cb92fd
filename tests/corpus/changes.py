"""Answers that differ, because a fault was repaired, and why.

The recorded program took every item from the nearest copy, whatever the plan said; the adapter to the present one asks
for that (`routes="nearest"`), so that runs can be compared. That plans are now carried out with their own sources is
tested in `simulator/events/test_carried_out.py`.
"""

from __future__ import annotations

CHANGES = frozenset(
    {
        # One transfer starts earlier, when the plan that needs it is handed over; nothing else changes.
        "run/54-random-sites-none-none/10.4-dheft",
    }
)
