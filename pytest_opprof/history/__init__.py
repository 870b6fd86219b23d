"""What tests measured over time: a log of small records, an index of it, and trends with change points."""
