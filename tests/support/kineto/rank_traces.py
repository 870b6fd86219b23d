"""Trace files of the ranks of small jobs: the work of one step, and when it ends."""

import json
from pathlib import Path
from typing import Any

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
STEP_US = 10_000
START_NS = 1_700_000_000_000_000_000


def rank_trace(
    rank: int,
    *,
    ranks: int,
    steps: int = 3,
    late_us: float = 0,
    clock_us: float = 0,
    muls: int = 2,
    gemm_us: float = 1000,
    sequences: bool = False,
    base_ns: int = START_NS,
) -> dict[str, Any]:
    """A rank that computes in each step, reaches an all-reduce on time or late, and ends with the others."""
    events: list[dict[str, Any]] = []

    def add(name: str, cat: str, start: float, duration: float, **members: Any) -> None:
        events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": start + clock_us, "dur": duration}
            | members
        )

    for step in range(steps):
        at = step * STEP_US
        add(f"ProfilerStep#{step}", "user_annotation", at, STEP_US)
        for number in range(muls):
            add("aten::mul", "cpu_op", at + 10 + 20 * number, 10)
        add("gemm", "kernel", at + 100, gemm_us, pid=0, tid=7, args={"device": 0, "stream": 7})
        args = {
            "device": 0, "stream": 20, "Collective name": "allreduce", "In msg nelems": 1024, "dtype": "Float",
            "Out msg nelems": 1024, "Group size": ranks, "Process Group Name": "0",
            "Process Group Ranks": json.dumps(list(range(ranks))),
        }  # fmt: skip
        if sequences:
            args["Seq"] = step
        begin, end = at + 3000 + late_us, at + 9000
        add(ALL_REDUCE, "kernel", begin, end - begin, pid=0, tid=20, args=args)
    info = {"backend": "nccl", "rank": rank, "world_size": ranks}
    return {"baseTimeNanoseconds": base_ns, "distributedInfo": info, "traceEvents": events}


def write_job(folder: Path, *, ranks: int, **plan: Any) -> Path:
    """A trace per rank; per-rank plans are dicts."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        own = {key: value.get(rank) if isinstance(value, dict) else value for key, value in plan.items()}
        told = {key: value for key, value in own.items() if value is not None}
        (folder / f"rank{rank}.json").write_text(json.dumps(rank_trace(rank, ranks=ranks, **told)))
    return folder
