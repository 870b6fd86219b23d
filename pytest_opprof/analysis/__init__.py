"""Analyses over all events of a recording."""
