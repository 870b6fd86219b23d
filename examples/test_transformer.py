"""A Transformer's training step and inference, compared with the baseline op by op."""

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("torch")

import torch

from .model import Training, batches

if TYPE_CHECKING:
    from torch import Tensor

# The tensors are so small that more threads would only wait for each other.
torch.set_num_threads(1)


@pytest.fixture
def training() -> Training:
    return Training(seed=0)


@pytest.fixture
def batch() -> "tuple[Tensor, Tensor]":
    return next(batches(seed=0))


@pytest.mark.profile(warmup=1, active=3, record_shapes=True)
def test_training_step(training: Training, batch: "tuple[Tensor, Tensor]") -> None:
    loss = training.step(*batch)
    assert loss.shape == ()


@pytest.mark.profile(warmup=1, active=3, limits=[{"aten::item.count": 0}])
def test_inference(training: Training, batch: "tuple[Tensor, Tensor]") -> None:
    tokens, _ = batch
    assert training.model(tokens).shape == (8, 16, 64)


def test_training_lowers_the_loss(training: Training) -> None:
    data = batches(seed=0)
    losses = [float(training.step(*next(data))) for _ in range(30)]
    assert losses[-1] < losses[0] / 2
