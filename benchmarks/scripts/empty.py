"""Nothing: what is left is the start of whatever runs it."""
