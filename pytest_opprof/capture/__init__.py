"""Record what a process does: the native collector and the sources that feed it."""
