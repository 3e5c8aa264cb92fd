"""The compiled loops of a replay."""
