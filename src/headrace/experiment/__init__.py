"""Comparisons and campaigns of many plans and simulations, with cached results."""
