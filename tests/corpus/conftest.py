"""The adapter to the old program is not collected: it imports what may be gone."""

collect_ignore = ["old_api.py"]
