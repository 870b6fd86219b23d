import json
from pathlib import Path

import pytest
from gpu.comparison import Seen, as_json, differences, from_json, seen_in


def windows(*, device_ns: int = 100_000, **counts: int) -> list[Seen]:
    return [Seen(counts=counts, device_ns=device_ns) for _ in range(3)]


def test_equal_work_has_no_difference() -> None:
    assert differences(windows(gemm=3, fill=1), windows(gemm=3, fill=1)) == []


@pytest.mark.parametrize(
    ("ours", "name"),
    [({"gemm": 4}, "gemm"), ({"gemm": 2}, "gemm"), ({}, "gemm"), ({"gemm": 3, "more": 1}, "more")],
    ids=["one more", "one less", "none", "another name"],
)
def test_each_name_must_be_as_often(ours: dict[str, int], name: str) -> None:
    found = differences(windows(**ours), windows(gemm=3))
    assert len(found) == 3
    assert all(sentence.startswith(f"{name}: ") for sentence in found)


def test_windows_of_one_side_must_agree() -> None:
    theirs = [*windows(gemm=3), Seen(counts={"gemm": 2}, device_ns=100_000)]
    assert differences(windows(gemm=3), theirs) == [
        "gemm: 2 in window 3 of torch.profiler, 3 in torch.profiler's first"
    ]


@pytest.mark.parametrize(
    ("ours_ns", "theirs_ns", "agree"),
    [
        (107_000, 100_000, True),
        (107_001, 100_000, False),
        (93_000, 100_000, True),
        (92_999, 100_000, False),
        (2_000, 0, True),
    ],
    ids=["at most", "longer", "at least", "shorter", "margin alone"],
)
def test_times_agree_within_five_percent_and_two_microseconds(
    ours_ns: int, theirs_ns: int, agree: bool
) -> None:
    found = differences(windows(gemm=1, device_ns=ours_ns), windows(gemm=1, device_ns=theirs_ns))
    assert (not found) == agree


def test_the_least_disturbed_window_is_compared() -> None:
    disturbed = [Seen(counts={"gemm": 1}, device_ns=900_000), *windows(gemm=1)]
    assert differences(disturbed, windows(gemm=1)) == []


@pytest.mark.parametrize(("theirs", "agree"), [(0, False), (1, False), (2, True)])
def test_work_has_its_launch_where_torch_profiler_has_it(theirs: int, agree: bool) -> None:
    ours, others = ([Seen(counts={"gemm": 3}, device_ns=100_000, unlaunched=count)] for count in (2, theirs))
    assert (not differences(ours, others)) == agree


@pytest.mark.parametrize("theirs", [[], windows()], ids=["no windows", "no kernels"])
def test_nothing_to_compare_with_is_a_difference(theirs: list[Seen]) -> None:
    assert differences(windows(), theirs) == [
        "torch.profiler saw nothing on the device: nothing can be compared"
    ]


def test_only_work_of_devices_is_read_from_a_trace(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "cat": "kernel", "name": "gemm", "dur": 1.25, "args": {"correlation": 1}},
        {"ph": "X", "cat": "kernel", "name": "gemm", "dur": 2, "args": {"correlation": 2}},
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "dur": 0.5, "args": {"correlation": 3}},
        {"ph": "X", "cat": "gpu_user_annotation", "name": "step", "dur": 50},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 9, "args": {"correlation": 1}},
        {"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernel", "dur": 9, "args": {"correlation": 2}},
        {"ph": "s", "cat": "ac2g", "name": "ac2g"},
    ]
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"traceEvents": events}))
    assert seen_in(trace) == Seen(counts={"gemm": 2, "Memcpy HtoD": 1}, device_ns=3750, unlaunched=1)


def test_windows_survive_serialization() -> None:
    seen = windows(gemm=3)
    assert from_json(json.loads(json.dumps(as_json(seen)))) == seen
