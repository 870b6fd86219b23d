"""Models that examples with torch use; the folder of such a page has this file and its fixtures."""

import torch

torch.set_num_threads(1)  # the tensors are small
torch.manual_seed(0)

model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
# Two samples: `model(batch)`, or `training.step(*batch)` for an input and its target.
batch = torch.ones(2, 8)


class Training:
    """A training step: forward, backward, update."""

    def __init__(self) -> None:
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(self, sample: torch.Tensor, target: torch.Tensor) -> None:
        """Learn from one sample."""
        self.optimizer.zero_grad()
        (model(sample) - target.mean()).square().mean().backward()
        self.optimizer.step()
