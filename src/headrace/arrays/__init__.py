"""What every algorithm shares: compiled code, and typed arrays."""
