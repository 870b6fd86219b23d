"""Compares our costs with those of other tools, both measured in one run."""
