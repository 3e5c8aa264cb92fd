"""Many plans side by side, none computed twice."""
