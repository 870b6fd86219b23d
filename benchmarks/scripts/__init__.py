"""Scripts that are run under profilers, each of its own kind."""
