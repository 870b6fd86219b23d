"""A typical script: it imports torch and trains a small model."""

from __future__ import annotations

import torch


def _trained(steps: int) -> float:
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters())
    batch, target = torch.randn(64, 32), torch.randn(64, 1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(batch), target)
        loss.backward()
        optimizer.step()
    return float(loss)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    assert _trained(300) < 1
