"""Timed, named, nested ops: one by one, and summed up by name."""
