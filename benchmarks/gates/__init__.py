"""Measures how often gates fail on unchanged code, and how often they find code that became slower."""
