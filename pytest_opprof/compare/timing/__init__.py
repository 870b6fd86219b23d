"""Times of two sides, measured alternately on one machine."""
