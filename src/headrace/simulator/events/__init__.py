"""The simulated grid with its actual speeds and loads, in virtual time: compiled loops over arrays."""
