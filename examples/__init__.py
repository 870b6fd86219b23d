"""A small suite that uses pytest-opprof as a project would: run it with `pytest examples`."""
