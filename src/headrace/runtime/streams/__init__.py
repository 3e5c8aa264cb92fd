"""The filter-stream runtime: one process per copy of a filter, buffers sent directly between them.

`plan` says which copies run where, `supervisor` starts them through an `agent` on each host and commits the
results of each unit of work, and a `copy_process` runs one filter between its incoming (`inlet`) and outgoing
(`outlet`) connections.
"""
