"""Loops to run while recording, and functions that time them."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A loop over ops.

    Attributes:
        loop: Runs the given number of rounds.
        rounds: Rounds that take a millisecond or two: short enough to run undisturbed now and then.
    """

    name: str
    loop: Callable[[int], None]
    rounds: int


FORWARD_ONLY: Final = ("add", "encoder, forward")


def torch_workloads() -> list[Workload]:
    """Workloads from one small op to a Transformer's training step."""
    import torch  # noqa: PLC0415  # the other benches run without it

    torch.set_num_threads(1)
    one, two = torch.ones(1), torch.ones(1)
    linear, batch = torch.nn.Linear(8, 8), torch.randn(4, 8)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    tokens = torch.randn(2, 16, 64)

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
        Workload(name="add", loop=add, rounds=1_000),
        Workload(name="linear, forward and backward", loop=linear_step, rounds=20),
        Workload(name="encoder, forward", loop=encoder_forward, rounds=2),
        Workload(name="encoder, forward and backward", loop=encoder_step, rounds=1),
    ]


def training_step() -> Callable[[int], None]:
    """The loop with the most ops of all kinds."""
    return torch_workloads()[-1].loop


def cpu_time_ns(loop: Callable[[int], None], n: int) -> int:
    """The processor time of `n` rounds: on a shared machine, wall time includes other processes."""
    start = time.thread_time_ns()
    loop(n)
    return time.thread_time_ns() - start


def undisturbed(samples: Sequence[float]) -> float:
    """The lowest decile: a measurement while no other process uses the caches.

    It is steadier than the minimum, which matters when two such values are subtracted.
    """
    return sorted(samples)[len(samples) // 10]


def quieten() -> None:
    """Pin this process to one processor and disable garbage collection."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    gc.collect()
    gc.freeze()
    gc.disable()
