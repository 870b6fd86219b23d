"""Traces of other tools, read into the columns that a recording of our own has."""
