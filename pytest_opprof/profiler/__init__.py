"""torch.profiler's API over our own collector, with torch or without."""
