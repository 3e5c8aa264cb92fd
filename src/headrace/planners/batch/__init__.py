"""Batch-mode heuristics: among all ready tasks, which one is placed next."""
