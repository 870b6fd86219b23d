"""An op that was renamed, fused or split, told as one change."""
