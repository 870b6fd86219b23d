"""Sums over real traces against torch's: its parser is given the very events of the file.

By default, two rules of torch's parser stay out, by which it hides helper ops and merges an op into a parent
of its name, and waits are charged to no op (docs/decisions.md): torch is not given their launches. With
``compat="torch"`` its whole parser is used.
"""

import gzip
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.kineto.kineto_forests import KinetoEvent, KinetoResult

from pytest_opprof import load_trace

torch = pytest.importorskip("torch")

OPS = frozenset({"cpu_op", "user_annotation"})
CALLS = frozenset({"cuda_runtime", "cuda_driver"})
WORK = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
ON_DEVICE = WORK | {"cuda_sync", "gpu_user_annotation"}
FILES = (
    "threads-torch2.13.0.json.gz",
    "training-torch2.13.0.json.gz",
    "alexnet_inference_cuda.json.gz",
    "backward_thread.json",
    "event_sync_multi_stream_cuda.json.gz",
    "minitoy_training_rocm.json.gz",
    pytest.param("nccl_training_rank0_cuda.json.gz", marks=pytest.mark.slow),  # the largest
    "sampled_training_cuda.json.gz",
    "simple_add_cuda.json.gz",
    "triton_kernel_cuda.json.gz",
)


def kineto_event(slice_: dict[str, Any], *, linked_to: int) -> KinetoEvent:
    """A slice of a trace as a Kineto event."""
    args, category = slice_["args"], slice_["cat"]
    start_ns = int(slice_["ts"] * 1000)
    on_device = category in ON_DEVICE
    thread = hash((slice_["pid"], slice_["tid"]))
    shapes = args.get("Input Dims", [])
    device_types = torch.autograd.DeviceType
    return KinetoEvent(
        activity_type="",
        name=slice_["name"],
        start_ns=start_ns,
        end_ns=start_ns + int(slice_["dur"] * 1000),
        correlation_id=int(args["External id"]) if category in OPS else 0,
        linked_correlation_id=linked_to,
        device_type=device_types.CUDA if on_device else device_types.CPU,
        device_index=int(slice_["pid"]) if on_device else 0,
        start_thread_id=thread,
        end_thread_id=thread,
        fwd_thread_id=int(args.get("Fwd thread id", 0)),
        sequence_nr=int(args.get("Sequence number", -1)),
        is_user_annotation=category in {"user_annotation", "gpu_user_annotation"},
        shapes=[[] if shape and isinstance(shape[0], list) else shape for shape in shapes],
        structured_input_shapes=shapes,
    )


def slices_of(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    events = json.loads(text, parse_float=Decimal)["traceEvents"]
    return [event for event in events if event["ph"] == "X" and event["cat"] != "Trace"]


def launching_ops(slices: Sequence[dict[str, Any]]) -> dict[int, int]:
    """By correlation: the External id of the innermost op or annotation around the call, 0 for none."""
    threads: dict[tuple[Any, Any], list[tuple[int, int, int]]] = {}
    for number, slice_ in enumerate(slices):
        if slice_["cat"] in OPS | CALLS:
            start_ns, end_ns = int(slice_["ts"] * 1000), int((slice_["ts"] + slice_["dur"]) * 1000)
            threads.setdefault((slice_["pid"], slice_["tid"]), []).append((start_ns, -end_ns, number))
    found: dict[int, int] = {}
    for thread in threads.values():
        ops: list[tuple[int, int]] = []  # those begun so far: end, External id
        for start_ns, minus_end_ns, number in sorted(thread):
            ops = [op for op in ops if op[0] > start_ns]
            args = slices[number]["args"]
            if slices[number]["cat"] in OPS:
                ops.append((-minus_end_ns, int(args["External id"])))
                continue
            around = [op for op in ops if op[0] >= -minus_end_ns]
            found.setdefault(args["correlation"], around[-1][1] if around else 0)
    return found


def torch_rows(path: Path, *, launched: frozenset[str] = WORK) -> list[Any]:
    """Torch's key averages of the file's events.

    Args:
        path: The file.
        launched: Categories whose events torch is given the launching op of.
    """
    slices = slices_of(path)
    launched_by = launching_ops(slices)
    profile = torch.autograd.profiler.profile(use_kineto=True)
    profile.use_device = "cuda"
    events = [
        kineto_event(
            slice_,
            linked_to=launched_by.get(slice_["args"].get("correlation", 0), 0)
            if slice_["cat"] in launched
            else 0,
        )
        for slice_ in slices
    ]
    begin_ns = min(int(event.start_ns()) for event in events)
    profile.kineto_results = KinetoResult(events, trace_start_ns=begin_ns)
    profile._needs_processing = True
    return list(profile.key_averages())


def ns(time_us: float) -> int:
    return round(time_us * 1000)


Sums = dict[tuple[str, int, bool], tuple[int, int, int, int, int]]


def sums(rows: Sequence[Any]) -> Sums:
    """The sums of each row of key averages, by key; times in nanoseconds."""
    return {
        (row.key, int(row.device_type), row.is_user_annotation): (
            row.count,
            ns(row.cpu_time_total),
            ns(row.self_cpu_time_total),
            ns(row.device_time_total),
            ns(row.self_device_time_total),
        )
        for row in rows
    }


@pytest.fixture
def whole_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's parser without the rules that leave events out."""
    monkeypatch.setattr(torch.autograd.profiler, "_filter_name", lambda _name: False)
    monkeypatch.setattr(torch.autograd.profiler_util.EventList, "_remove_dup_nodes", lambda _events: None)


@pytest.mark.usefixtures("whole_torch")
@pytest.mark.parametrize("name", FILES)
def test_sums_equal_those_of_torchs_parser(real_trace: Callable[[str], Path], name: str) -> None:
    recording = load_trace(real_trace(name)).recording
    ours = {
        (group.name, group.device_type, group.is_user_annotation): (
            group.count,
            group.total_ns,
            group.self_ns,
            group.device_total_ns,
            group.self_device_ns,
        )
        for group in recording.groups()
    }
    assert ours == sums(torch_rows(real_trace(name)))


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_by_torchs_rules_all_sums_are_equal(real_trace: Callable[[str], Path], name: str) -> None:
    ours = load_trace(real_trace(name)).key_averages(compat="torch")
    assert sums(ours) == sums(torch_rows(real_trace(name), launched=WORK | {"cuda_sync"}))
