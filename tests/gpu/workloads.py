"""GPU programs that both profilers record: each gives a step, warmed up and the same each time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

Step = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Attributes:
    needs: The packages that it imports, torch apart, which is the other side of each comparison.
    """

    title: str
    make: Callable[[], Step]
    needs: tuple[str, ...] = ()


def training() -> Step:
    import torch

    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64)).cuda()
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.01, momentum=0.9)
    batch = torch.randn(128, 256)

    def step() -> None:
        optimizer.zero_grad()
        loss = layers(batch.cuda()).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def graph() -> Step:
    import torch

    given = torch.randn(256, 256, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # everything must exist before a capture
        for _ in range(3):
            (given @ given).relu().sum()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        (given @ given).relu().sum()
    return captured.replay  # type: ignore[no-any-return]  # torch is Any here


def streams() -> Step:
    import torch

    several = [torch.cuda.Stream() for _ in range(3)]
    given = [torch.randn(512, 512, device="cuda") for _ in several]
    torch.cuda.synchronize()

    def step() -> None:
        for stream, matrix in zip(several, given, strict=True):
            with torch.cuda.stream(stream):
                matrix.mul(2).add_(1).sum()

    return step


def triton() -> Step:
    import torch
    from gpu.triton_kernel import add

    given = torch.randn(10_000, device="cuda")
    out = torch.empty_like(given)
    return lambda: add(given, given, out)


def cupy() -> Step:
    import cupy

    given = cupy.arange(100_000, dtype=cupy.float32)

    def step() -> None:
        (cupy.sin(given) * given + 1).sum()

    return step


WORKLOADS: Final[Mapping[str, Workload]] = {
    "training": Workload(title="a training step of PyTorch, with its copies", make=training),
    "graph": Workload(title="a CUDA graph, replayed", make=graph),
    "streams": Workload(title="kernels on three streams", make=streams),
    "triton": Workload(title="a Triton kernel", make=triton, needs=("triton",)),
    "cupy": Workload(title="CuPy", make=cupy, needs=("cupy",)),
}
