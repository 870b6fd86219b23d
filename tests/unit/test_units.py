"""Numbers as text and back."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_opprof.errors import UsageError
from pytest_opprof.units import (
    Comparator,
    Unit,
    format_bytes,
    format_change,
    format_duration,
    format_memory,
    format_quantity,
    format_time,
    format_time_share,
    parse_bytes,
    parse_limit,
    parse_percent,
    parse_quantity,
)


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (0, "0.000us"),
        (1_234, "1.234us"),
        (999_999, "999.999us"),
        (1_000_000, "1.000ms"),
        (1_234_567, "1.235ms"),
        (2_500_000_000, "2.500s"),
    ],
)
def test_times_read_as_torch_prints_them(time_ns: int, text: str) -> None:
    assert format_time(time_ns) == text


def test_share_of_nothing_is_nan() -> None:
    assert format_time_share(0, 0) == "NaN"
    assert format_time_share(1, 3) == "33.33%"


@pytest.mark.parametrize(
    ("size", "table", "reader"),
    [
        (0, "0 B", "0 B"),
        (-512, "-512 B", "-512 B"),
        (1536, "1.50 KB", "1.5 KiB"),
        (64 * 2**20, "64.00 MB", "64.0 MiB"),
        (3 * 2**30, "3.00 GB", "3.0 GiB"),
    ],
)
def test_bytes_have_two_spellings(size: int, table: str, reader: str) -> None:
    assert format_memory(size) == table
    assert format_bytes(size) == reader


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [(800, "800 ns"), (1_000, "1.0 µs"), (999_960, "1.0 ms"), (4_440_000, "4.4 ms"), (12 * 10**9, "12.0 s")],
)
def test_durations_keep_few_figures(time_ns: int, text: str) -> None:
    assert format_duration(time_ns) == text


def test_change_carries_its_sign() -> None:
    assert format_change(2, unit=Unit.COUNT) == "+2"
    assert format_change(-3 * 2**20, unit=Unit.BYTES) == "-3.0 MiB"
    assert format_change(0, unit=Unit.COUNT) == "0"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64 MiB", 64 * 2**20),
        ("64MB", 64 * 10**6),
        ("1.5 KiB", 1536),
        ("12", 12),
        ("7 b", 7),
        ("1_000 B", 1000),
    ],
)
def test_sizes_are_read_by_the_standard(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(("text", "time_ns"), [("1.5 ms", 1_500_000), ("3us", 3_000), ("2 s", 2 * 10**9)])
def test_times_are_read_with_their_unit(text: str, time_ns: int) -> None:
    assert parse_quantity(text, unit=Unit.NS) == time_ns


@pytest.mark.parametrize(
    ("flops", "text"),
    [
        (0, "0 FLOPs"),
        (999, "999 FLOPs"),
        (67_584, "67.58 KFLOPs"),
        (-63_488, "-63.49 KFLOPs"),
        (999_999, "1.00 MFLOPs"),
        (3 * 10**15, "3.00 PFLOPs"),
    ],
)
def test_flops_read_in_their_unit(flops: int, text: str) -> None:
    assert format_quantity(flops, unit=Unit.FLOPS) == text


def test_counts_may_be_short() -> None:
    assert parse_quantity("3 k", unit=Unit.COUNT) == 3_000


@pytest.mark.parametrize("text", ["", "5", "ms", "5 parsecs", "1e999 ms", "nan s", "5 ms x"])
def test_no_time_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a time: write it like '1\.5 ms'"):
        parse_quantity(text, unit=Unit.NS)


@pytest.mark.parametrize(
    ("limit", "unit", "comparator", "value"),
    [
        (0, Unit.COUNT, Comparator.AT_MOST, 0),
        ("12", Unit.COUNT, Comparator.AT_MOST, 12),
        ("<= 64 MiB", Unit.BYTES, Comparator.AT_MOST, 64 * 2**20),
        ("<5 ms", Unit.NS, Comparator.BELOW, 5_000_000),
        ("= 3", Unit.COUNT, Comparator.EQUAL, 3),
        ("== 3", Unit.COUNT, Comparator.EQUAL, 3),
        (">= 1", Unit.COUNT, Comparator.AT_LEAST, 1),
        ("> 1", Unit.FLOPS, Comparator.ABOVE, 1),
        ("<= 1.5 MFLOPs", Unit.FLOPS, Comparator.AT_MOST, 1_500_000),
        ("512 FLOPs", Unit.FLOPS, Comparator.AT_MOST, 512),
        ("<= 1.5 k", Unit.COUNT, Comparator.AT_MOST, 1_500),
        ("1", Unit.THOUSANDTHS, Comparator.AT_MOST, 1_000),
        (0, Unit.PPM, Comparator.AT_MOST, 0),
    ],
)
def test_limits_are_read(limit: int | str, unit: Unit, comparator: Comparator, value: int) -> None:
    bound = parse_limit(limit, unit=unit)
    assert (bound.comparator, bound.value) == (comparator, value)


@pytest.mark.parametrize(
    "limit", [True, None, 1.5, -1, "<= -1", "<=", "=> 3", "3 apples", "<< 3", "<= 1.5", "< 2.5"]
)
def test_no_limit_is_a_usage_error(limit: object) -> None:
    with pytest.raises(UsageError, match="is no"):
        parse_limit(limit, unit=Unit.COUNT)


@pytest.mark.parametrize(("unit", "example"), [(Unit.PPM, "<= 20 %"), (Unit.THOUSANDTHS, "<= 1.5")])
def test_limits_of_shares_and_means_are_text(unit: Unit, example: str) -> None:
    with pytest.raises(UsageError, match=f"^20 is not a limit: write it like '{example}'$"):
        parse_limit(20, unit=unit)


def test_limit_prints_without_needless_zero() -> None:
    assert str(parse_limit("<= 64 MiB", unit=Unit.BYTES)) == "<= 64 MiB"


@given(value=st.integers(0, 100), limit=st.integers(0, 100))
def test_bounds_agree_with_python(value: int, limit: int) -> None:
    held = {
        "<=": value <= limit,
        "<": value < limit,
        ">=": value >= limit,
        ">": value > limit,
        "==": value == limit,
    }
    for comparator, expected in held.items():
        assert parse_limit(f"{comparator} {limit}", unit=Unit.COUNT).holds(value) is expected


def test_percentages_are_exact() -> None:
    assert parse_percent("2.5%", where="x") == Fraction(1, 40)
    with pytest.raises(UsageError, match="x: '2' is not a percentage"):
        parse_percent("2", where="x")
