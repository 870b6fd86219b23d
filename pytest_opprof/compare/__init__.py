"""Two runs to changes to verdicts."""
