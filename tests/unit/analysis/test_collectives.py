"""Collectives and their bandwidth, computed by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof.analysis.collectives import Collective, collectives, is_collective
from pytest_opprof.traces.kineto import load_trace


def collective(tmp_path: Path, name: str, **args: Any) -> Collective:
    kernel = {
        "ph": "X", "cat": "kernel", "name": name, "pid": 3, "tid": 20, "ts": 100, "dur": 1000,
        "args": {"device": 3, "stream": 20, **args},
    }  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [kernel]}))
    (found,) = collectives(load_trace(path).recording)
    return found


@pytest.mark.parametrize(
    ("kernel", "is_one"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", True),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", True),
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", True),
        ("mscclppKernel_AllReduce(void*)", True),
        ("mscclKernel_Sum_float_LL_true(ncclDevComm*)", True),
        ("ncclGroupStart(kernel)", False),
        ("void my_nccl_like_gemm(float*)", False),
        ("gemm", False),
    ],
)
def test_collective_is_recognized_by_its_kernel_name(kernel: str, *, is_one: bool) -> None:
    assert is_collective(kernel) is is_one


def test_parameters_come_from_nccl(tmp_path: Path) -> None:
    found = collective(
        tmp_path,
        "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        **{
            "Collective name": "_allgather_base",
            "In msg nelems": 1000,
            "Out msg nelems": 4000,
            "Group size": 4,
            "dtype": "BFloat16",
            "Process Group Name": "7",
            "Process Group Ranks": "[0, 2, 4, 6]",
            "Seq": 12,
        },
    )
    assert (found.name, found.group, found.group_size, found.ranks) == ("allgather", "7", 4, (0, 2, 4, 6))
    assert (found.device, found.sequence, found.nbytes) == (3, 12, 8000)
    # 8,000 bytes in a millisecond; each link carries three quarters of it.
    assert found.algorithm_bandwidth == pytest.approx(8e6)
    assert found.bus_bandwidth == pytest.approx(6e6)


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("allreduce", 1.5),
        ("allreduce_coalesced", 1.5),
        ("reduce_scatter", 0.75),
        ("allgather_into_tensor_coalesced", 0.75),
        ("reduce_scatter_tensor_coalesced", 0.75),
        ("all_to_all", 0.75),
        ("all_to_allv", 0.75),
        ("broadcast", 1),
        ("send", 1),
    ],
)
def test_bus_bandwidth_is_as_nccl_tests_defines_it(tmp_path: Path, name: str, factor: float) -> None:
    args = {"Collective name": name, "In msg nelems": 500, "Group size": 4, "dtype": "Long"}
    found = collective(tmp_path, "ncclDevKernel_X_RING(int)", **args)
    assert found.bus_bandwidth == pytest.approx(4e6 * factor)


def test_unrecorded_values_are_unknown(tmp_path: Path) -> None:
    found = collective(tmp_path, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)")
    assert (found.name, found.nbytes, found.group_size, found.sequence) == ("allreduce", 0, 0, -1)
    assert found.bus_bandwidth == found.algorithm_bandwidth == 0


@pytest.mark.parametrize("told", ["[0, 2]", [0, 2]], ids=["text", "list"])
def test_ranks_are_text_or_a_list(tmp_path: Path, told: object) -> None:
    found = collective(tmp_path, "ncclDevKernel_AllReduce_Sum(int)", **{"Process Group Ranks": told})
    assert (found.ranks, found.group_size) == ((0, 2), 2)


def test_truncated_rank_list_is_not_a_list(tmp_path: Path) -> None:
    args = {"Group size": 512, "Process Group Ranks": "[0, 1, 2, ..., 511]"}
    found = collective(tmp_path, "ncclDevKernel_AllReduce_Sum(int)", **args)
    assert (found.ranks, found.group_size) == ((), 512)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)", "sendrecv"),
        ("ncclSymDevKernel_AllReduce_AGxLL_R_sum_bf16(ncclSymDevArgs)", "allreduce"),
        ("ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_f32(ncclSymkDevWorkArgs4K)", "allreduce"),
    ],
)
def test_kernel_without_arguments_names_the_collective(tmp_path: Path, kernel: str, name: str) -> None:
    assert collective(tmp_path, kernel).name == name


@pytest.mark.parametrize("told", ["[" * 100_000, "[99999999999999999999]"], ids=["deep", "large"])
def test_hostile_ranks_are_unknown(tmp_path: Path, told: str) -> None:
    found = collective(
        tmp_path, "ncclKernel_AllReduce_RING_LL_Sum_float(int)", **{"Process Group Ranks": told}
    )
    assert found.ranks == ()
