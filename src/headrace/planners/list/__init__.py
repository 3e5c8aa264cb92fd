"""List scheduling: tasks in an order of priority, each to the host that serves it best."""
