"""A NumPy pipeline: NumPy reports no ops of its own, so the stages are named ranges."""

import pytest

pytest.importorskip("numpy")

import numpy as np

from .pipeline import loudest_hz, recorded


@pytest.mark.profile(warmup=1, active=3, limits=[{"pipeline: spectrum.count": 1}])
def test_loudest_frequency() -> None:
    samples = recorded(channels=4, samples=2000, seed=0)
    np.testing.assert_allclose(loudest_hz(samples), [50.0, 100.0, 150.0, 200.0])
