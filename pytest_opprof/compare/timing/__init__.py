"""Times of two sides that were measured in turns on one machine."""
