"""A NumPy pipeline from a sensor's raw samples to the loudest frequency of each channel."""

import numpy as np
from numpy.typing import NDArray

from pytest_opprof import record_function

Samples = NDArray[np.float64]

RATE_HZ = 1000


def recorded(*, channels: int, samples: int, seed: int) -> Samples:
    """Make noisy tones: channel c has one of 50 x (c + 1) Hz."""
    noise = np.random.default_rng(seed).normal(scale=0.1, size=(channels, samples))
    seconds = np.arange(samples) / RATE_HZ
    tones_hz = 50.0 * np.arange(1, channels + 1)
    return np.sin(2 * np.pi * tones_hz[:, None] * seconds) + noise


def centred(samples: Samples) -> Samples:
    """Subtract each channel's mean."""
    with record_function("pipeline: centre"):
        means: Samples = samples.mean(axis=1, keepdims=True)
        return samples - means


def windowed(samples: Samples) -> Samples:
    """Fade each channel in and out, to reduce spectral leakage."""
    with record_function("pipeline: window"):
        return samples * np.hanning(samples.shape[1])


def spectrum(samples: Samples) -> Samples:
    """The magnitude of each channel by frequency."""
    with record_function("pipeline: spectrum"):
        return np.abs(np.fft.rfft(samples, axis=1))


def loudest_hz(samples: Samples) -> Samples:
    """The loudest frequency of each channel: the whole pipeline."""
    with record_function("pipeline"):
        prepared = centred(samples)
        prepared = windowed(prepared)
        loudest: Samples = spectrum(prepared).argmax(axis=1) * (RATE_HZ / samples.shape[1])
        return loudest
