"""Few calls with much work in each: NumPy clusters points."""

from __future__ import annotations

import numpy as np


def _clustered(points: np.ndarray, *, clusters: int, rounds: int) -> np.ndarray:
    centres = points[:clusters]
    for _ in range(rounds):
        distances = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        nearest = distances.argmin(axis=1)
        centres = np.stack([points[nearest == at].mean(axis=0) for at in range(clusters)])
    return centres


if __name__ == "__main__":
    made = np.random.default_rng(0).normal(size=(20_000, 8))
    assert _clustered(made, clusters=8, rounds=30).shape == (8, 8)
