"""Scripts to run under profilers, each with another kind of work."""
