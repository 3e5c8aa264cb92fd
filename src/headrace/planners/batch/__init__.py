"""Batch-mode heuristics: rules that choose the next of all ready tasks."""
