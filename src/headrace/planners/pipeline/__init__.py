"""How many copies of each filter of a pipeline, on which hosts, with which flows."""
