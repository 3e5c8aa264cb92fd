"""The grid as it truly is, in virtual time: compiled loops over arrays."""
