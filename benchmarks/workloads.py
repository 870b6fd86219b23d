"""What is run under observation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A loop, how often it is run in one measurement, and whether it runs backward."""

    name: str
    loop: Callable[[int], None]
    rounds: int


def torch_workloads() -> list[Workload]:
    """From one small op to a Transformer's training step."""
    import torch  # noqa: PLC0415  # the other benches run without it

    torch.set_num_threads(1)
    one, two = torch.ones(1), torch.ones(1)
    linear, batch = torch.nn.Linear(8, 8), torch.randn(4, 8)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    encoder, tokens = (
        torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
        torch.randn(2, 16, 64),
    )

    def add(n: int) -> None:
        op = torch.add
        for _ in range(n):
            op(one, two)

    def linear_step(n: int) -> None:
        for _ in range(n):
            linear(batch).sum().backward()

    def encoder_step(n: int) -> None:
        for _ in range(n):
            encoder(tokens).sum().backward()

    def encoder_forward(n: int) -> None:
        with torch.no_grad():
            for _ in range(n):
                encoder(tokens)

    return [
        Workload(name="add", loop=add, rounds=10_000),
        Workload(name="linear, forward and backward", loop=linear_step, rounds=300),
        Workload(name="encoder, forward and backward", loop=encoder_step, rounds=8),
        Workload(name="encoder, forward", loop=encoder_forward, rounds=20),
    ]


def elapsed_ns(loop: Callable[[int], None], n: int) -> int:
    """How long `n` rounds take."""
    start = time.perf_counter_ns()
    loop(n)
    return time.perf_counter_ns() - start
