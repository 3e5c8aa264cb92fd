"""Schedulers that decide while the program runs."""
