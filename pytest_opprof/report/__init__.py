"""Runs and comparisons for a reader. Everything here renders documents, never live objects."""
