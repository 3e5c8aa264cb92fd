"""A run as pages see it: how late, at what cost to the server, and whether a page that was away sees the same."""

from __future__ import annotations


def live() -> None:
    raise SystemExit("soon")
