"""Lower bounds from linear and integer programs over kinds of tasks and classes of hosts."""
