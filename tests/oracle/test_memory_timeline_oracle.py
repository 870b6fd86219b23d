"""The memory timeline against torch's: bytes of each category allocated, freed and recategorized."""

import gzip
import json
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import ProfilerActivity, profile
from pytest_opprof.analysis.memory_categories import Category
from pytest_opprof.analysis.memory_timeline import Action

pytestmark = pytest.mark.usefixtures("torch", "no_garbage")

Step = Callable[[], None]
Told = dict[tuple[str, str], int]
FLAGS: dict[str, Any] = {"record_shapes": True, "profile_memory": True, "with_stack": True}


def dense(torch: Any) -> Step:
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    return training(torch, model, torch.optim.Adam(model.parameters()), (16, 64))


def convolutions(torch: Any) -> Step:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2)
    )
    return training(torch, model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), (2, 3, 16, 16))


def attention(torch: Any) -> Step:
    model = torch.nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)
    return training(torch, model, torch.optim.AdamW(model.parameters()), (2, 8, 32))


def training(torch: Any, model: Any, optimizer: Any, size: tuple[int, ...]) -> Step:
    def step() -> None:
        batch = torch.randn(size)
        optimizer.zero_grad()
        model(batch).pow(2).sum().backward()
        optimizer.step()

    return step


def inference(torch: Any) -> Step:
    model = torch.nn.Linear(64, 64)
    return lambda: model(torch.randn(16, 64)).sum()


def summed_up(raw: list[list[int]]) -> Told:
    sums: Counter[tuple[str, str]] = Counter()
    for _, action, nbytes, category in raw:
        sums[Category(category).name, Action(action).name] += nbytes
    return {key: nbytes for key, nbytes in sums.items() if nbytes}


def told_by_us(step: Step, path: Path) -> Told:
    with profile(activities=[ProfilerActivity.CPU], **FLAGS) as prof:
        step()
        step()
    prof.export_memory_timeline(path)
    return summed_up(json.loads(gzip.decompress(path.read_bytes())))


def told_by_torch(torch: Any, step: Step, path: Path) -> Told:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **FLAGS) as prof:
        step()
        step()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch removes its own
        prof.export_memory_timeline(str(path), "cpu")
    return summed_up(json.loads(gzip.decompress(path.read_bytes())))


@pytest.mark.parametrize("make", [dense, convolutions, attention, inference])
def test_categories_match_torchs(torch: Any, make: Callable[[Any], Step], tmp_path: Path) -> None:
    told = []
    for ask in (told_by_us, lambda step, path: told_by_torch(torch, step, path)):
        torch.manual_seed(0)
        step = make(torch)
        for _ in range(2):
            step()
        told.append(ask(step, tmp_path / "timeline.raw.json.gz"))
    ours, theirs = told
    # Torch's allocator also reports blocks of an earlier window, which have no owner here.
    earlier = theirs.pop(("UNKNOWN", "PREEXISTING"), 0) - ours.pop(("UNKNOWN", "PREEXISTING"), 0)
    if earlier:
        theirs["UNKNOWN", "DESTROY"] += earlier
    assert ours == theirs
