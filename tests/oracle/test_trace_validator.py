"""Torch's validity rules of a trace: ours break none that the original trace keeps."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_opprof import load_trace

pytest.importorskip("torch")
validator = pytest.importorskip("torch.profiler._trace_validator", reason="this torch has no such tool")

KEEPS_ALL = (
    "calls-torch2.13.0.json.gz",
    "threads-torch2.13.0.json.gz",
    "training-torch2.13.0.json.gz",
    "alexnet_inference_cuda.json.gz",
    "backward_thread.json",
    "minitoy_training_rocm.json.gz",
    "nccl_training_rank0_cuda.json.gz",
    "simple_add_cuda.json.gz",
    "triton_kernel_cuda.json.gz",
)
# Rules that Kineto itself broke: a wait for an earlier event, collectives without a name.
BREAKS_SOME = {"event_sync_multi_stream_cuda.json.gz": 1, "sampled_training_cuda.json.gz": 8}


@pytest.mark.parametrize("name", [*KEEPS_ALL, *BREAKS_SOME])
def test_written_trace_breaks_no_other_rule(
    real_trace: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    path = real_trace(name)
    given = path.read_bytes()
    (tmp_path / "given.json").write_bytes(gzip.decompress(given) if name.endswith(".gz") else given)
    load_trace(path).export_chrome_trace(tmp_path / "ours.json")
    holds, broken = validator.validate_trace(str(tmp_path / "given.json"))
    assert (holds, len(broken)) == (name in KEEPS_ALL, BREAKS_SOME.get(name, 0))
    assert validator.validate_trace(str(tmp_path / "ours.json")) == (holds, broken)
