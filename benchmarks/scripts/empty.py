"""Does nothing, so that only the start-up of Python and a profiler is measured."""
