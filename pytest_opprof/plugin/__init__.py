"""The pytest plugin: hooks that parse, call one thing, and print."""
