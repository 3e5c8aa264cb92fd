"""What the program answered before it was rebuilt, kept so that nothing changes by accident."""
