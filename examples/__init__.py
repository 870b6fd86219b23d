"""A small suite that uses pytest-opprof as a project would. Run it with `pytest examples`."""
