"""The op table, as torch.profiler prints it."""

from dataclasses import replace

import pytest
from support.documents.strategies import cuda_test, simple_test

from pytest_opprof.errors import UsageError
from pytest_opprof.kinds import OpKind
from pytest_opprof.report.op_table import SORT_KEYS, op_table
from pytest_opprof.results.run import CaptureStats, OpRow, TestResult
from pytest_opprof.results.samples import Samples

TEST = simple_test({"aten::mul": 1, "aten::addmm": 3, "aten::relu": 2}, steps=2)

GOLDEN = """\
---------------  ------------  ------------  ------------  ------------  ------------  ------------
           Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls
---------------  ------------  ------------  ------------  ------------  ------------  ------------
    aten::addmm        50.00%       6.000us       100.00%      12.000us       2.000us             6
     aten::relu        33.33%       4.000us        66.67%       8.000us       2.000us             4
      aten::mul        16.67%       2.000us        33.33%       4.000us       2.000us             2
---------------  ------------  ------------  ------------  ------------  ------------  ------------
Self CPU time total: 12.000us"""


def names(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines[3:-2]]


def test_table_matches_torchs() -> None:
    assert "\n".join(line.rstrip() for line in op_table(TEST)) == GOLDEN


@pytest.mark.parametrize(
    ("capture", "sentence"),
    [
        (CaptureStats(dropped=12), "Events not recorded: 12 (they are missing from this table)"),
        (CaptureStats(truncated=True), "The recording was cut off when its byte budget was used up"),
        (CaptureStats(names_overflowed=3), "Too many names: 3 events share the name (overflow)"),
        (
            CaptureStats(sampled_ppm=10_000),
            "Sampled: 1% of torch's ops were recorded; counts and sums cover only these",
        ),
        (CaptureStats(device_dropped=4), "CUDA is incomplete: 4 device records were dropped"),
    ],
    ids=["dropped", "cut off", "nameless", "sampled", "devices"],
)
def test_losses_are_reported_below_the_table(capture: CaptureStats, sentence: str) -> None:
    assert op_table(replace(TEST, capture=capture)) == [*op_table(TEST), sentence]


def test_rows_that_the_document_lacks_are_counted() -> None:
    assert op_table(replace(TEST, ops_omitted=7)) == [*op_table(TEST), "Rows not kept: 7"]


@pytest.mark.parametrize("key", SORT_KEYS)
def test_every_key_sorts(key: str) -> None:
    assert len(names(op_table(TEST, sort_by=key))) == 3


def test_names_sort_upwards() -> None:
    assert names(op_table(TEST, sort_by="name")) == ["aten::addmm", "aten::mul", "aten::relu"]


def test_rows_are_limited() -> None:
    assert names(op_table(TEST, rows=1)) == ["aten::addmm"]
    assert len(names(op_table(TEST, rows=-1))) == 3
    assert op_table(TEST, rows=1)[-1] == "Self CPU time total: 12.000us"


def test_columns_are_chosen_in_torchs_order() -> None:
    header = op_table(TEST, columns=["# of calls", "Self CPU"])[1]
    assert header.split() == ["Name", "Self", "CPU", "#", "of", "Calls"]


def test_unknown_key_or_column_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"unknown sort key 'cout' \(did you mean 'count'\?\)"):
        op_table(TEST, sort_by="cout")
    with pytest.raises(UsageError, match="unknown column 'zzz'"):
        op_table(TEST, columns=["zzz"])


def test_long_and_hostile_names_are_tamed() -> None:
    rows = (replace(TEST.ops[0], name="x" * 100), replace(TEST.ops[1], name="a\x1b[31m\n"))
    shown = names(op_table(replace(TEST, ops=rows), sort_by="name"))
    assert shown == ["a\\x1b[31m\\n", "x" * 52 + "..."]


def test_async_ops_have_no_share() -> None:
    (row,) = op_table(replace(TEST, ops=(replace(TEST.ops[0], is_async=True),)))[3:-2]
    assert row.split()[3] == "0"


def test_recorded_memory_has_a_column() -> None:
    assert "CPU Mem" not in op_table(TEST)[1]
    first, *others = TEST.ops
    taken = first.with_metrics(cpu_memory=Samples.constant(-2048, steps=TEST.steps))
    table = op_table(replace(TEST, ops=(taken, *others)), sort_by="cpu_memory_usage")
    assert table[1].split()[-5:] == ["CPU", "Mem", "#", "of", "Calls"]
    assert names(table)[-1] == taken.name
    assert "-4.00 KB" in table[-3]
    assert "CPU Mem" in op_table(TEST, columns=["cpu mem"])[1]


def times(test: TestResult, **of_rows: dict[str, int]) -> TestResult:
    """The test with device times in each step, by the last word of a row's name."""

    def each(row: OpRow) -> OpRow:
        found = of_rows.get(row.name.rpartition("::")[2] if row.kind is OpKind.OP else "kernel", {})
        return row.with_metrics(
            **{name: Samples.constant(value, steps=test.steps) for name, value in found.items()}
        )

    return replace(test, ops=tuple(each(row) for row in test.ops))


CUDA = times(
    cuda_test({"aten::mm": {"kernels": 1, "launches": 1}, "aten::view": {}}, steps=2),
    mm={"device_time_total": 5_000, "self_device_time_total": 5_000, "device_idle_fraction": 250_000},
    kernel={"device_time_total": 5_000, "self_device_time_total": 5_000},
)
CUDA_GOLDEN = """\
                  Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg     Self CUDA\
   Self CUDA %    CUDA total  CUDA time avg    # of Calls
              aten::mm        50.00%       2.000us       100.00%       4.000us       2.000us      10.000us\
       100.00%      10.000us        5.000us             2
            aten::view        50.00%       2.000us       100.00%       4.000us       2.000us       0.000us\
         0.00%       0.000us        0.000us             2
    kernel of aten::mm         0.00%       0.000us         0.00%       0.000us       0.000us      10.000us\
       100.00%      10.000us        5.000us             2
Self CPU time total: 4.000us
Self CUDA time total: 10.000us
CUDA, in each step: kernels 1, launches 1"""


def test_recorded_devices_have_torchs_columns() -> None:
    lines = [line.rstrip() for line in op_table(CUDA) if not line.startswith("-")]
    assert "\n".join(lines) == CUDA_GOLDEN
    assert "CUDA" not in "".join(op_table(TEST))


def test_device_counts_have_columns_on_request() -> None:
    lines = op_table(CUDA, columns=["Kernels", "cuda idle", "Copied", "CUDA busy", "Queue depth"])
    assert lines[1].split("  ")[-1] == ""
    assert lines[1].split() == ["Name", "Kernels", "Copied", "CUDA", "busy", "CUDA", "idle", "Queue", "depth"]
    assert lines[3].split() == ["aten::mm", "2", "0", "B", "0.000us", "25.0", "%", "0.0"]


def test_incomplete_device_records_are_reported() -> None:
    torn = replace(CUDA, capture=CaptureStats(device_dropped=7))
    assert op_table(torn)[-1] == "CUDA is incomplete: 7 device records were dropped"


def test_empty_test_has_an_empty_table() -> None:
    lines = op_table(TestResult(node_id="x"))
    assert len(lines) == 5
    assert "CPU Mem" not in lines[1]


def test_copies_are_shown_by_known_direction() -> None:
    work = {"copies": 3, "copies_dtoh": 2, "copies_htod": 1, "copied_bytes": 96, "copied_bytes_htod": 96}
    test = cuda_test({"aten::to": work})
    assert op_table(test)[-1] == "CUDA, in each step: HtoD 1 (96 B), DtoH 2 (0 B)"
    kept = {name: samples for name, samples in test.totals.items() if not name.startswith("copies_")}
    assert op_table(replace(test, totals=kept))[-1] == "CUDA, in each step: copies 3 (96 B)"
    del kept["copies.bytes"]
    assert op_table(replace(test, totals=kept))[-1] == "CUDA, in each step: copies 3"
