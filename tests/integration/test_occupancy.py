"""Kernel occupancy in our traces, against traces that Kineto wrote on an A100."""

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
from support.programs.children import answer_of

pytestmark = pytest.mark.usefixtures("fake_cuda")

OCCUPANCY = "est. achieved occupancy %"
# CUdevice_attribute, by Kineto's words for them.
ATTRIBUTES = {
    "computeMajor": 75,
    "computeMinor": 76,
    "maxThreadsPerBlock": 1,
    "maxThreadsPerMultiprocessor": 39,
    "regsPerBlock": 12,
    "regsPerMultiprocessor": 82,
    "warpSize": 10,
    "sharedMemPerBlock": 8,
    "numSms": 16,
    "sharedMemPerBlockOptin": 97,
    "sharedMemPerMultiprocessor": 81,
}
FILES = (
    "alexnet_inference_cuda.json.gz",
    "event_sync_multi_stream_cuda.json.gz",
    "nccl_training_rank0_cuda.json.gz",
    "simple_add_cuda.json.gz",
    "triton_kernel_cuda.json.gz",
)

PROGRAM = """
    import json
    from support.cuda import fake_cuda
    cuda = fake_cuda.load(device=None)
    kernels, device = json.loads({asked!r})
    for attribute, value in device:
        cuda.attribute(attribute, value)
    cuda.use_device(0)
    from pytest_opprof import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        for number, (grid, block, registers, shared) in enumerate(kernels):
            cuda.launch(f"k{{number}}", grid=grid, block=block, registers=registers, dynamic_shared=shared)
    prof.export_chrome_trace({path!r})
    with open({path!r}) as trace:
        events = [event for event in json.load(trace)["traceEvents"] if event.get("cat") == "kernel"]
    print(json.dumps([event["args"].get({key!r}) for event in sorted(events, key=lambda event: int(event["name"][1:]))]))
"""

Kernel = tuple[tuple[int, ...], tuple[int, ...], int, int]  # grid, block, registers, shared memory


def told_by_us(folder: Path, kernels: list[Kernel], device: dict[str, int]) -> list[int | None]:
    asked = json.dumps([kernels, [[ATTRIBUTES[name], value] for name, value in device.items()]])
    path = str(folder / "trace.json")
    said: list[int | None] = answer_of(PROGRAM.format(asked=asked, path=path, key=OCCUPANCY))
    return said


def kernel(args: dict[str, Any]) -> Kernel:
    shared = args["shared memory"]
    return tuple(args["grid"]), tuple(args["block"]), args["registers per thread"], shared


@pytest.mark.parametrize("name", FILES)
def test_occupancy_matches_kineto(name: str, traces: Path, tmp_path: Path) -> None:
    trace = json.loads(gzip.decompress((traces / name).read_bytes()))
    (device,) = ({word: one[word] for word in ATTRIBUTES} for one in trace["deviceProperties"][:1])
    expected = {
        kernel(event["args"]): event["args"][OCCUPANCY]
        for event in trace["traceEvents"]
        if OCCUPANCY in event.get("args", {})
    }
    kernels = list(expected)
    told = dict(zip(kernels, told_by_us(tmp_path, kernels, device), strict=True))
    # The Kineto of these traces reports 0 for a block with more shared memory than the default limit; later
    # versions use the limit that a block can request.
    most = device["sharedMemPerBlock"]
    asking = {one for one in kernels if one[3] > most}
    assert {one: told[one] for one in kernels if one not in asking} == {
        one: expected[one] for one in kernels if one not in asking
    }
    assert {expected[one] for one in asking} <= {0}
    assert all(told[one] for one in asking if math.prod(one[0]) >= device["numSms"])


def test_a_device_of_an_unknown_architecture_has_none(tmp_path: Path) -> None:
    assert told_by_us(tmp_path, [((8, 1, 1), (128, 1, 1), 32, 0)], {"computeMajor": 99}) == [None]


@pytest.mark.parametrize(
    ("major", "minor", "kernel", "expected"),
    [
        (7, 0, ((8000, 1, 1), (32, 1, 1), 16, 0), 50),  # 32 blocks of 1 warp of 64
        (7, 5, ((8000, 1, 1), (32, 1, 1), 16, 0), 25),  # 16 blocks
        (8, 9, ((8000, 1, 1), (32, 1, 1), 16, 0), 38),  # 24 blocks
        (9, 0, ((8000, 1, 1), (32, 1, 1), 16, 227 << 10), 2),  # each block needs all shared memory: 1 block
        (9, 0, ((8000, 1, 1), (1024, 1, 1), 65, 0), 0),  # more registers than there are: it cannot run
        (6, 0, ((8000, 1, 1), (64, 1, 1), 104, 0), 28),  # 9 warps in each half, not 4 in each quarter
        (9, 0, ((66, 1, 1), (1024, 1, 1), 16, 0), 25),  # a block for every other multiprocessor
    ],
)
def test_limits_depend_on_the_architecture(
    major: int, minor: int, kernel: Kernel, expected: int, tmp_path: Path
) -> None:
    assert told_by_us(tmp_path, [kernel], {"computeMajor": major, "computeMinor": minor}) == [expected]
