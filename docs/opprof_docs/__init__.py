"""Generates parts of the docs from the code."""
