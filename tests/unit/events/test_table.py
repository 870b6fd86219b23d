"""The op table; the oracle tests compare it with torch's, letter by letter."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_opprof.errors import UsageError
from pytest_opprof.events.columns import Compat
from pytest_opprof.events.device import DeviceType
from pytest_opprof.events.function_event_avg import FunctionEventAvg
from pytest_opprof.events.key_averages import KeyAverages


def row(key: str, **known: Any) -> FunctionEventAvg:
    return FunctionEventAvg(key=key, name=key, **{"count": 1, "node_id": -1, **known})


def cells(table: str, line: int) -> list[str]:
    return table.splitlines()[line].split()


TWO_ROWS = (
    row("aten::mm", count=2, cpu_time_total=3000, self_cpu_time_total=3000),
    row("aten::add", count=1, cpu_time_total=1.5, self_cpu_time_total=1.5),
)

PLAIN = """\
-------------  ------------  ------------  ------------  ------------  ------------  ------------  \n\
         Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  \n\
-------------  ------------  ------------  ------------  ------------  ------------  ------------  \n\
     aten::mm        99.95%       3.000ms        99.95%       3.000ms       1.500ms             2  \n\
    aten::add         0.05%       1.500us         0.05%       1.500us       1.500us             1  \n\
-------------  ------------  ------------  ------------  ------------  ------------  ------------  \n\
Self CPU time total: 3.002ms
"""


def test_plain_table_matches_torchs() -> None:
    assert KeyAverages(TWO_ROWS).table() == PLAIN
    assert str(KeyAverages(TWO_ROWS)) == PLAIN


def test_a_notebook_shows_the_table() -> None:
    rows = KeyAverages([FunctionEventAvg(key="<script>&", count=1)])
    shown = rows._repr_html_()
    assert (
        shown == f"<pre>{rows.table().replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}</pre>"
    )
    assert "&lt;script&gt;&amp;" in shown


def test_rows_fall_by_the_sort_key() -> None:
    table = KeyAverages(reversed(TWO_ROWS)).table(sort_by="cpu_time_total")
    assert [line.split()[0] for line in table.splitlines()[3:5]] == ["aten::mm", "aten::add"]


def test_equal_rows_keep_their_order() -> None:
    table = KeyAverages([row("b"), row("a"), row("c")]).table(sort_by="count")
    assert [line.split()[0] for line in table.splitlines()[3:6]] == ["b", "a", "c"]


@pytest.mark.parametrize("sort_by", ["cpu_tiem", "add", ""], ids=["typo", "method", "empty"])
def test_unknown_sort_key_is_refused(sort_by: str) -> None:
    with pytest.raises(UsageError, match=f"a table cannot be sorted by '{sort_by}'"):
        KeyAverages(TWO_ROWS).table(sort_by=sort_by)


def test_rows_without_the_value_come_last() -> None:
    rows = [row("none", flops=None), row("some", flops=3)]
    assert cells(KeyAverages(rows).table(sort_by="flops"), 3)[0] == "some"


def test_limit_leaves_the_totals_whole() -> None:
    table = KeyAverages(TWO_ROWS).table(row_limit=1)
    assert "aten::add" not in table
    assert table.endswith("Self CPU time total: 3.002ms\n")


def test_header_stands_above() -> None:
    lines = KeyAverages(TWO_ROWS).table(header="my model").splitlines()
    assert set(lines[0]) == {"="}
    assert len(lines[0]) == len(lines[2].rstrip())
    assert lines[1] == "my model"


def test_one_unit_for_all_times() -> None:
    assert cells(KeyAverages(TWO_ROWS).table(time_unit="ms"), 4)[2] == "0.002ms"


def test_async_total_has_no_share() -> None:
    rows = [row("request", is_async=True, cpu_time_total=5), row("op", self_cpu_time_total=1)]
    assert cells(KeyAverages(rows).table(), 3)[3] == "0"


def test_zero_total_time_has_no_share() -> None:
    assert cells(KeyAverages([row("op")]).table(), 3)[1] == "NaN"


def test_long_names_lose_their_end() -> None:
    long = "a" * 60
    assert ("a" * 52 + "...") in KeyAverages([row(long)]).table()
    assert long in KeyAverages([row(long)]).table(max_name_column_width=None)


DEVICE_ROWS = (
    row(
        "gemm",
        device_type=DeviceType.CUDA,
        use_device="cuda",
        device_time_total=4,
        self_device_time_total=4,
    ),
    row(
        "forward",
        device_type=DeviceType.CUDA,
        use_device="cuda",
        is_user_annotation=True,
        device_time_total=6,
        self_device_time_total=6,
    ),
)


def test_device_columns_come_with_device_time() -> None:
    table = KeyAverages(DEVICE_ROWS).table()
    titles = re.split(" {2,}", table.splitlines()[1].strip())
    assert titles[6:10] == ["Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"]
    assert table.endswith("Self CUDA time total: 4.000us\n")


@pytest.mark.parametrize(("compat", "share"), [(None, "--"), ("torch", "150.00%")], ids=["ours", "torchs"])
def test_device_annotation_has_no_share_of_the_kernels(compat: Compat | None, share: str) -> None:
    assert share in cells(KeyAverages(DEVICE_ROWS).table(compat=compat), 4)


def test_annotations_alone_on_the_device_are_accepted() -> None:
    assert "forward" in KeyAverages(DEVICE_ROWS[1:]).table()
    assert "NaN" in KeyAverages(DEVICE_ROWS[1:]).table(compat="torch")


def test_memory_columns_are_asked_for() -> None:
    rows = [row("aten::empty", cpu_memory_usage=2048, self_cpu_memory_usage=-1024)]
    assert cells(KeyAverages(rows, profile_memory=True).table(), 3)[-5:] == ["2.00", "KB", "-1.00", "KB", "1"]
    assert "Mem" not in KeyAverages(rows).table()


def test_device_memory_columns_come_with_device_memory() -> None:
    rows = [row("aten::empty", use_device="cuda", device_memory_usage=7, self_device_memory_usage=7)]
    assert "CUDA Mem  Self CUDA Mem" in KeyAverages(rows, profile_memory=True).table()


STACKED_ROWS = (
    row("aten::mm", flops=2_000_000, stack=["model.py(41): forward", "train.py(7): step"]),
    row("aten::add", flops=0),
)


def last_cells(table: Sequence[str]) -> list[str]:
    return [line.split("  ")[-2].strip() for line in table]


def test_source_and_flops_stand_under_their_titles() -> None:
    lines = KeyAverages(STACKED_ROWS, with_flops=True).table().splitlines()
    place = lines[1].index("Source Location")
    assert lines[3][place:].startswith("model.py(41): forward")
    assert lines[4][place:].startswith("train.py(7): step")
    assert lines[5].strip() == ""
    assert last_cells(lines[:4]) == ["-" * 12, "Total MFLOPs", "-" * 12, "2.000"]


def test_compat_repeats_torchs_swap_of_source_and_flops() -> None:
    lines = KeyAverages(STACKED_ROWS, with_flops=True).table(compat="torch").splitlines()
    place = lines[1].index("Source Location")
    assert lines[3][place:].split() == ["2.000", "model.py(41):", "forward"]


def test_long_source_loses_its_beginning() -> None:
    table = KeyAverages(STACKED_ROWS).table(max_src_column_width=10)
    assert "...forward" in table


def test_flops_without_any_are_left_out() -> None:
    assert "FLOPs" not in KeyAverages(TWO_ROWS, with_flops=True).table()


def test_optional_columns_come_with_their_values() -> None:
    table = KeyAverages([row("aten::add", overload_name="Tensor", node_id=3, input_shapes=[[2, 3]])]).table()
    assert "Overload Name" in table
    assert cells(table, 3)[-4:] == ["1", "3", "[[2,", "3]]"]
