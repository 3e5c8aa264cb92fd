"""Experiments: substitutions in a program, their combinations, and the merged program in which each task runs once."""
