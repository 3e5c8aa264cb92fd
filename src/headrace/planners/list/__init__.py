"""List scheduling: tasks in priority order, each on the host that is best for it."""
