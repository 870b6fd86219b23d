"""What the events of a recording say, taken together."""
