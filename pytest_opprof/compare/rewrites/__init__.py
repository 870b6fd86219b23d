"""A renamed, fused or split op, shown as one change."""
