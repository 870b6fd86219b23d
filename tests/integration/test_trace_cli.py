"""``opprof trace``: traces shown, compared, and made into runs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof.cli.main import main
from pytest_opprof.results.files import read_run


def slice_(name: str, start_us: float, duration_us: float, **members: Any) -> dict[str, Any]:
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start_us, "dur": duration_us}
    return event | members


def training(*, steps: int, ops: int, kernel_us: float = 30) -> list[dict[str, Any]]:
    """Steps of a millisecond with N ops each, the first of which launches a kernel."""
    events = []
    for step in range(steps):
        start_us = step * 1000
        events.append(slice_(f"ProfilerStep#{step}", start_us, 1000, cat="user_annotation"))
        events += [slice_("aten::mul", start_us + 100 * place, 50) for place in range(1, ops + 1)]
        launch = {"cat": "cuda_runtime", "args": {"correlation": step + 1}}
        events.append(slice_("cudaLaunchKernel", start_us + 110, 10, **launch))
        kernel = {"cat": "kernel", "pid": 0, "tid": 7, "args": {"correlation": step + 1}}
        events.append(slice_("mul_kernel", start_us + 130, kernel_us, **kernel))
    return events


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two traces, where commands start."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "before.json").write_text(json.dumps(training(steps=2, ops=3)), encoding="utf-8")
    after = training(steps=4, ops=5, kernel_us=50)
    (tmp_path / "after.json").write_text(json.dumps(after), encoding="utf-8")
    return tmp_path


def cells_of(text: str) -> list[list[str]]:
    lines = [line.split("  ") for line in text.splitlines()]
    return [[cell.strip() for cell in line if cell.strip()] for line in lines]


def rows_of(text: str) -> dict[str, list[str]]:
    """The same rows, by their first cell."""
    return {row[0]: row[1:] for row in cells_of(text) if row}


@pytest.mark.usefixtures("files")
def test_show_prints_key_averages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "show", "before.json", "--sort", "count", "--rows", "1"]) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[0] == "before.json: 12 events, 1 thread, 1 device, 2 steps, 2.0 ms"
    rows = rows_of(told)
    assert "Self CUDA" in rows["Name"]
    assert rows["aten::mul"][-1] == "6"
    assert "mul_kernel" not in told
    assert "Self CUDA time total: 60.000us" in told


@pytest.mark.usefixtures("files")
def test_show_has_a_line_for_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "show", "before.json", "--steps"]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert rows["0"] == ["0 ns", "1.0 ms", "6", "1.0 ms", "30.0 µs"]
    assert rows["1"] == ["1.0 ms", "1.0 ms", "6", "1.0 ms", "30.0 µs"]


@pytest.mark.usefixtures("files")
def test_diff_compares_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "diff", "before.json", "after.json"]) == 0
    told = capsys.readouterr().out
    assert "in each step, of 2 and 4" in told
    rows = rows_of(told)
    assert rows["aten::mul"] == ["3 → 5", "140.0 µs → 240.0 µs", "30.0 µs → 50.0 µs", "+100.0 µs"]
    assert rows["mul_kernel (device)"] == ["1", "30.0 µs → 50.0 µs", "+20.0 µs"]
    assert "cudaLaunchKernel" not in rows
    assert told.splitlines()[-1] == "3 of 4 ops changed · 1 the same"


@pytest.mark.usefixtures("files")
def test_equal_traces_have_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "diff", "before.json", "before.json"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 of 4 ops changed · 4 the same"


def test_traces_without_steps_are_compared_whole(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "bare.json").write_text(json.dumps([slice_("aten::mul", 0, 10)]), encoding="utf-8")
    assert main(["trace", "diff", "bare.json", "before.json", "--rows", "1"]) == 0
    told = capsys.readouterr().out
    assert "of the whole of each trace" in told
    assert rows_of(told)["ProfilerStep*"] == ["0 → 2", "0 ns → 1.7 ms", "+1.7 ms"]
    assert told.splitlines()[-1] == "4 of 4 ops changed · 3 more changed · 0 the same"


def test_a_trace_becomes_a_run(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "to-run", "before.json", "-o", "before.run.json"]) == 0
    assert main(["trace", "to-run", "after.json", "-o", "after.run.json"]) == 0
    (test,) = read_run(files / "before.run.json").tests
    assert (test.node_id, test.steps, test.sources) == ("trace", 2, ("ranges", "ops", "cuda"))
    assert (test.totals["ops.count"].low, test.totals["ops.count"].high) == (3, 3)
    assert {row.name for row in test.ops} == {"aten::mul", "cudaLaunchKernel", "ProfilerStep*", "mul_kernel"}
    capsys.readouterr()
    assert main(["compare", "before.run.json", "after.run.json"]) in {0, 1}
    assert "aten::mul" in capsys.readouterr().out
    assert main(["compare", "before.run.json", "before.run.json"]) == 0


def launching(*, kernels: int, seen: int | None = None, waits: int = 0) -> list[dict[str, Any]]:
    """Two steps of one op that launches N kernels, some of them recorded, and waits."""
    events = []
    for step in range(2):
        start_us = 1000 * step
        events.append(slice_(f"ProfilerStep#{step}", start_us, 1000, cat="user_annotation"))
        events.append(slice_("aten::mm", start_us + 10, 900))
        for at in range(kernels):
            args = {"correlation": 100 * step + at}
            launch = {"cat": "cuda_runtime", "args": args}
            events.append(slice_("cudaLaunchKernel", start_us + 20 + 10 * at, 5, **launch))
            if seen is None or at < seen:
                kernel = {"cat": "kernel", "pid": 0, "tid": 7, "args": args}
                events.append(slice_("gemm", start_us + 1500 + 10 * at, 8, **kernel))
        for at in range(waits):
            wait = {"cat": "cuda_runtime", "args": {"correlation": 90 + 100 * step + at}}
            events.append(slice_("cudaStreamSynchronize", start_us + 500 + 10 * at, 5, **wait))
    return events


@pytest.mark.parametrize(
    ("head", "code", "told"),
    [
        (launching(kernels=2), 0, "1 passed"),
        (launching(kernels=3), 1, "1 more kernel in each step than the run of"),
        (launching(kernels=2, waits=1), 1, "1 more sync in each step"),
        (launching(kernels=1), 0, "1 improved"),
        (launching(kernels=2, seen=1), 1, "2 launches have no kernel on record in this run"),
    ],
    ids=["same", "kernel", "wait", "fewer", "torn"],
)
def test_runs_of_traces_are_gated_on_devices(
    files: Path, capsys: pytest.CaptureFixture[str], head: list[dict[str, Any]], code: int, told: str
) -> None:
    for name, events in (("base", launching(kernels=2)), ("head", head)):
        (files / f"{name}.json").write_text(json.dumps(events), encoding="utf-8")
        assert main(["trace", "to-run", f"{name}.json", "-o", f"{name}.run.json"]) == 0
    capsys.readouterr()
    assert main(["compare", "base.run.json", "head.run.json"]) == code
    assert told in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("compute", "told"),
    [((9, 0), "1 passed"), ((8, 6), "GPU architecture 9.0 -> 8.6")],
    ids=["same GPU", "another GPU"],
)
def test_runs_of_traces_know_their_gpu(
    files: Path, capsys: pytest.CaptureFixture[str], compute: tuple[int, int], told: str
) -> None:
    for name, (major, minor) in (("base", (9, 0)), ("head", compute)):
        properties = {"id": 0, "name": f"GPU {major}", "computeMajor": major, "computeMinor": minor}
        document = {
            "deviceProperties": [properties, properties, "no device"],
            "cuda_runtime_version": 12060,
            "traceEvents": launching(kernels=2),
        }
        (files / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
        assert main(["trace", "to-run", f"{name}.json", "-o", f"{name}.run.json"]) == 0
    fields = read_run(files / "base.run.json").environment.fingerprint
    assert fields == {"gpu_arch": "9.0", "gpu_model": "GPU 9", "cuda": "12.6"}
    capsys.readouterr()
    main(["compare", "base.run.json", "head.run.json"])
    assert told in " ".join(capsys.readouterr().out.split())


def test_a_trace_without_steps_is_one_step(files: Path) -> None:
    (files / "bare.json").write_text(json.dumps([slice_("aten::mul", 0, 10)] * 2), encoding="utf-8")
    assert (
        main(["trace", "to-run", "bare.json", "-o", "bare.run.json.gz", "--test", "tests/t.py::test_x"]) == 0
    )
    (test,) = read_run(files / "bare.run.json.gz").tests
    assert (test.node_id, test.steps) == ("tests/t.py::test_x", 1)
    assert test.totals["ops.count"].total == 2


@pytest.mark.parametrize(
    "name",
    [
        "training-torch2.13.0.json.gz",
        "minitoy_training_rocm.json.gz",
        "nccl_training_rank0_cuda.json.gz",
    ],
)
def test_real_traces_become_runs(real_trace: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    assert main(["trace", "to-run", str(real_trace(name)), "-o", str(tmp_path / "run.json")]) == 0
    (test,) = read_run(tmp_path / "run.json").tests
    assert test.totals["ops.count"].total > 0


def test_bad_file_is_reported(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "bad.json").write_bytes(b'[{"name": "\x1b')
    assert main(["trace", "show", "bad.json"]) == 4
    assert capsys.readouterr().err == (
        "opprof: bad.json is not a whole Chrome trace: byte 11: a control character in a string\n"
    )


def test_work_that_is_not_understood_is_told(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = [slice_("aten::mul", 0, 10, cat="Operator"), slice_("aten::mul", 0, 10) | {"ts": "3.5"}]
    for name, events in {"odd": odd, "mixed": [*odd, slice_("aten::add", 20, 10)]}.items():
        (files / f"{name}.json").write_text(json.dumps(events), encoding="utf-8")
    assert main(["trace", "show", "odd.json"]) == 0
    assert main(["trace", "diff", "before.json", "odd.json"]) == 0
    assert (
        capsys.readouterr().out.count("odd.json: 2 events are not understood and left out: the category") == 2
    )
    assert main(["trace", "to-run", "odd.json", "-o", "odd.run.json"]) == 4
    assert "odd.json: no op in this trace can be read" in capsys.readouterr().err
    assert main(["trace", "to-run", "mixed.json", "-o", "mixed.run.json"]) == 0
    assert "mixed.json: 2 events are not understood" in capsys.readouterr().out
    assert "2 events of the trace are not understood" in read_run(files / "mixed.run.json").notes


def test_hostile_names_are_escaped(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = json.dumps([slice_("\x1b[31mred", 0, 10)])
    (files / "hostile.json").write_text(hostile, encoding="utf-8")
    assert main(["trace", "show", "hostile.json"]) == 0
    assert main(["trace", "diff", "before.json", "hostile.json"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def nccl(duration_us: float, *, rank: int) -> dict[str, Any]:
    """A rank that waits this long for the others."""
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    args = {"Collective name": "allreduce", "In msg nelems": 250_000, "Group size": 2, "dtype": "Float"}
    events = [
        slice_("ProfilerStep#0", 0, 1000, cat="user_annotation"),
        slice_(name, 900 - duration_us, duration_us, cat="kernel", pid=0, tid=20, args=args),
    ]
    return {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}


def test_less_waiting_is_not_an_improvement(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "rank0.json").write_text(json.dumps(nccl(500, rank=0)), encoding="utf-8")
    (files / "rank1.json").write_text(json.dumps(nccl(100, rank=1)), encoding="utf-8")
    assert main(["trace", "diff", "rank0.json", "rank1.json"]) == 0
    told = capsys.readouterr().out
    assert "-400.0 µs with waiting" in told
    assert "less time in them is not an improvement" in told


def test_missing_ranks_of_traces_are_named(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "rank1.json").write_text(json.dumps(nccl(100, rank=1)), encoding="utf-8")
    assert main(["trace", "to-run", "rank1.json", "-o", "rank1.run.json"]) == 0
    assert read_run(files / "rank1.run.json").environment.details == {"rank": "1", "world_size": "2"}
    assert main(["merge", "rank1.run.json", "-o", "all.json"]) == 1
    assert "missing: rank 0 of 2" in capsys.readouterr().out


def test_show_breaks_down_device_time(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "rank0.json").write_text(json.dumps(nccl(500, rank=0)), encoding="utf-8")
    assert main(["trace", "show", "rank0.json", "--collectives", "--overlap", "--idle"]) == 0
    told = capsys.readouterr().out
    rows = rows_of(told)
    assert rows["allreduce"] == ["0", "400.0 µs", "500.0 µs", "1.0 MiB", "2", "1.9 GiB/s", "1.9 GiB/s"]
    assert ["1.0 ms", "0 ns", "500.0 µs", "0%", "500.0 µs", "0 ns"] in [row[2:] for row in cells_of(told)]
    assert "a lower bound" in told
    assert "peak memory unknown" in told


def test_all_tables_of_a_trace_have_its_step_numbers(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = nccl(500, rank=0)
    content["traceEvents"][0]["name"] = "ProfilerStep#7"
    (files / "rank0.json").write_text(json.dumps(content), encoding="utf-8")
    assert main(["trace", "show", "rank0.json", "--steps", "--collectives", "--overlap", "--idle"]) == 0
    cells = cells_of(capsys.readouterr().out)
    below = [cells[at + 1][row.index("step")] for at, row in enumerate(cells) if "step" in row]
    assert below == ["7"] * 4


def test_trace_without_steps_has_no_step_numbers(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = nccl(500, rank=0)
    content["traceEvents"][0]["name"] = "forward"
    (files / "rank0.json").write_text(json.dumps(content), encoding="utf-8")
    assert main(["trace", "show", "rank0.json", "--collectives", "--overlap"]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert (rows["allreduce"][0], rows["0"][0]) == ("400.0 µs", "1.0 ms")


@pytest.mark.usefixtures("files")
def test_show_names_what_a_trace_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "show", "before.json", "--collectives"]) == 0
    assert "no collectives: the trace has no kernels of NCCL or RCCL" in capsys.readouterr().out
