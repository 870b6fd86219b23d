"""Profiles that never ran, for `BasicEvaluation`: Kineto's events, and an event tree."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

HOST, CUDA = 0, 1
LAUNCHES = (
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "__cudaLaunchKernel",
    "cudaLaunchCooperativeKernel",
    "cudaLaunchCooperativeKernelMultiDevice",
    "cudaMemcpyAsync",
)
KERNELS = ("gemm", "reduce", "Memcpy HtoD (Pageable -> Device)", "Memset (Device)", "mem_efficient_attention")


@dataclass(frozen=True)
class TextNamed:
    """A Kineto event whose name is a text, as in PyTorch's own tests."""

    name: str
    start: int
    duration: int
    cause: int
    device: int
    device_type_of: Callable[[int], Any] = field(default=int, compare=False)

    def start_ns(self) -> int:
        return self.start

    def duration_ns(self) -> int:
        return self.duration

    def linked_correlation_id(self) -> int:
        return self.cause

    def device_type(self) -> Any:
        return self.device_type_of(self.device)


class Told:
    """A Kineto event: all fields are methods, and work has correlation ids."""

    def __init__(
        self,
        name: str,
        start: int,
        duration: int,
        *,
        device: int = HOST,
        number: int = 0,
        cause: int = 0,
        activity: str | None = None,
        annotation: bool = False,
    ) -> None:
        self._answers: dict[str, Any] = {
            "name": name,
            "start_ns": start,
            "duration_ns": duration,
            "device_type": device,
            "correlation_id": number,
            "linked_correlation_id": cause,
            "activity_type": activity or ("kernel" if device else "cuda_runtime"),
            "is_user_annotation": annotation,
        }

    def __getattr__(self, what: str) -> Callable[[], Any]:
        if what.startswith("_") or what not in self._answers:
            raise AttributeError(what)
        return lambda: self._answers[what]


@dataclass(eq=False)
class Node:
    """An event of a tree."""

    name: str
    id: int
    start_time_ns: int
    duration_time_ns: int
    children: list[Node] = field(default_factory=list, repr=False)
    parent: Node | None = field(default=None, repr=False)

    @property
    def end_time_ns(self) -> int:
        return self.start_time_ns + self.duration_time_ns

    def put(self, *children: Node) -> Node:
        for child in children:
            child.parent = self
            self.children.append(child)
        return self


def profile_of(told: Iterable[Any], tree: Sequence[Node]) -> SimpleNamespace:
    """An object with a profile's results."""
    events = list(told)
    results = SimpleNamespace(events=lambda: events, experimental_event_tree=lambda: list(tree))
    return SimpleNamespace(kineto_results=results)


def published_profile(device_type_of: Callable[[int], Any] = int) -> SimpleNamespace:
    """The generated profile of PyTorch's own tests of queue depth and idle time."""
    told = [
        TextNamed("cudaLaunchKernel", start * 100_000, 100_000, cause, HOST, device_type_of)
        for cause, start in enumerate((4, 5, 6, 7, 8, 15), 1)
    ]
    told += [
        TextNamed("GPU", start * 100_000, 100_000, cause, CUDA, device_type_of)
        for cause, start in enumerate((9, 10, 11, 12, 13, 17), 1)
    ]
    starts = [*range(10), 11, 12]
    labels = ["Before cudaLaunchKernel"] * 4 + ["After cudaLaunchKernel"] * 4 + ["After GPU"] * 4
    tree = [
        Node(f"CPU ({label})", number, start * 100_000, 500_000 if start == 12 else 100_000)
        for number, (label, start) in enumerate(zip(labels, starts, strict=True), 1)
    ]
    return profile_of(told, tree)


def recorded_profile(
    kineto_events: list[Any], tree: list[Any], device_type_of: Callable[[int], Any] = int
) -> Any:
    """A profile like the one that PyTorch's test of optimizable events reads from a file."""
    told = [
        TextNamed(
            one["_name"],
            one["_start_us"] * 1000,
            one["_duration_us"] * 1000,
            one["_linked_correlation_id"],
            one["_device_type"],
            device_type_of,
        )
        for one in kineto_events
    ]
    nodes = {
        one["id"]: Node(one["_name"], one["id"], one["start_time_ns"], one["duration_time_ns"])
        for one in tree
    }
    for one in tree:
        nodes[one["id"]].put(*(nodes[child] for child in one["children"]))
    return profile_of(told, [node for node in nodes.values() if node.parent is None])


def random_profile(
    seed: int, device_type_of: Callable[[int], Any] = int, *, span: int = 400
) -> SimpleNamespace:
    """A profile with equal times, overlaps, lost kernels, shared causes and events of no duration."""
    dice = random.Random(seed)  # noqa: S311  # no secret
    told = []
    for cause in range(dice.randrange(12)):
        shared = dice.choice((cause + 1, 1, 0))
        launched = dice.randrange(span)
        told += [
            TextNamed(dice.choice(LAUNCHES), launched + n, dice.randrange(9), shared, HOST, device_type_of)
            for n in range(dice.choice((0, 1, 1, 1, 3)))
        ]
        told += [
            TextNamed(dice.choice(KERNELS), started, dice.randrange(60), shared, CUDA, device_type_of)
            for started in (launched + dice.randrange(-5, 90) for _ in range(dice.choice((0, 1, 1, 1, 2))))
        ]
    dice.shuffle(told)
    return profile_of(told, random_tree(dice, span=span))


def burst_profile(seed: int, device_type_of: Callable[[int], Any] = int) -> SimpleNamespace:
    """A profile whose queue repeatedly fills and empties, so that there is something to rank."""
    dice = random.Random(seed)  # noqa: S311  # no secret
    told = []
    now = cause = 0
    for _ in range(dice.randrange(1, 5)):
        now += dice.randrange(1, 60)
        first = now
        count = dice.randrange(1, 9)
        for place in range(count):
            cause += 1
            told.append(TextNamed("cudaLaunchKernel", first + 2 * place, 2, cause, HOST, device_type_of))
            told.append(TextNamed("gemm", first + 9 + 10 * place, 10, cause, CUDA, device_type_of))
        now = first + 9 + 10 * count
    return profile_of(told, [tree for _ in range(4) for tree in random_tree(dice, span=now + 50)])


def random_tree(dice: random.Random, *, span: int) -> list[Node]:
    numbers = iter(lambda: dice.getrandbits(60), None)

    def grown(start: int, end: int, depth: int) -> list[Node]:
        level = []
        while start <= end and dice.random() < 0.7:
            begin = dice.randint(start, end)
            stop = dice.randint(begin, end)
            name = dice.choice(("aten::mm", "model.py(3): forward", "aten::copy_", "<built-in function len>"))
            node = Node(name, next(numbers), begin, stop - begin)
            level.append(node.put(*grown(begin, stop, depth + 1)) if depth < 3 else node)
            start = stop
        return level

    return grown(0, span, 0)
