"""Planners that try several plans and keep the best."""
