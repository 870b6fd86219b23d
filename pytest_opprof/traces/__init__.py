"""Traces of other tools, read into the columns of our own recordings."""
