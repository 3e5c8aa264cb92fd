"""Benchmarks: each module measures one thing and prints a table; see docs/benchmarks.md."""
