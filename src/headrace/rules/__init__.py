"""The rules language: what a schedule must and should be."""
