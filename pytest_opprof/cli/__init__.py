"""The command ``opprof``: one module per command; each parses, calls one thing, prints."""
