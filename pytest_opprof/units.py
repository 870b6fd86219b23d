"""Convert nanoseconds, bytes and counts to text and back.

Inside the package, times are integers of nanoseconds and sizes integers of bytes. There are two spellings:
torch.profiler's (``1.234ms``, ``1.50 KB``) for tables like torch's, and a reader's (``4.4 ms``, ``1.5 MiB``)
for everything else.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from pytest_opprof.errors import UsageError

if TYPE_CHECKING:
    from fractions import Fraction

NS_IN_US = 1_000
NS_IN_MS = 1_000_000
NS_IN_S = 1_000_000_000
EVERY_PPM = 1_000_000  # the whole, in parts per million
_US_IN_MS = 1_000.0
_US_IN_S = 1_000_000.0
_KIB = 1024
_FLOPS_UNITS = {"PFLOPs": 10**15, "TFLOPs": 10**12, "GFLOPs": 10**9, "MFLOPs": 10**6, "KFLOPs": 10**3}
ONE_IN_THOUSANDTHS = 1000
MOST_IN_JSON = 2**53 - 1  # the largest integer that every reader of JSON keeps


class Unit(StrEnum):
    """What the integers of a metric count."""

    COUNT = "count"
    NS = "ns"
    BYTES = "bytes"
    FLOPS = "flops"
    PPM = "ppm"  # a share, in parts per million
    THOUSANDTHS = "thousandths"  # a mean of counts


class Comparator(StrEnum):
    """How a value must compare with a limit."""

    AT_MOST = "<="
    BELOW = "<"
    AT_LEAST = ">="
    ABOVE = ">"
    EQUAL = "=="


_HOLDS: Mapping[Comparator, Callable[[int, int], bool]] = {
    Comparator.AT_MOST: operator.le,
    Comparator.BELOW: operator.lt,
    Comparator.AT_LEAST: operator.ge,
    Comparator.ABOVE: operator.gt,
    Comparator.EQUAL: operator.eq,
}
_TIME_UNITS = {"ns": 1, "us": NS_IN_US, "µs": NS_IN_US, "ms": NS_IN_MS, "s": NS_IN_S}
# By the standards, KiB is 1024 bytes and KB is 1000 (torch's tables print KB for 1024).
_BYTE_UNITS = {"": 1, "b": 1} | {
    f"{letter}{suffix}": base ** (power + 1)
    for power, letter in enumerate("kmgt")
    for suffix, base in (("ib", 1024), ("b", 1000))
}
_PARSED_FLOPS = {"flops": 1} | {name.lower(): scale for name, scale in _FLOPS_UNITS.items()}
_COUNT_UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000, "t": 1_000_000_000_000}
# By the unit of a metric: the units that users write, what the value is called, and an example of it.
_WRITTEN = {
    Unit.NS: (_TIME_UNITS, "time", "1.5 ms"),
    Unit.BYTES: (_BYTE_UNITS, "size", "64 MiB"),
    Unit.FLOPS: (_COUNT_UNITS | _PARSED_FLOPS, "number", "2 MFLOPs"),
    Unit.COUNT: (_COUNT_UNITS, "count", "12"),
    Unit.PPM: ({"%": EVERY_PPM // 100}, "share", "20 %"),
    Unit.THOUSANDTHS: ({"": ONE_IN_THOUSANDTHS}, "mean", "1.5"),
}
_QUANTITY = re.compile(r"\s*([+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?)\s*([A-Za-zµ%]*)\s*")
_PERCENT = re.compile(r"\s*([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*%\s*")
_LIMIT = re.compile(r"\s*(<=|>=|==|=|<|>)?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A limit on one number: a comparator and an integer in the metric's unit."""

    comparator: Comparator
    value: int
    unit: Unit

    def holds(self, value: int) -> bool:
        """Whether ``value`` is within the limit."""
        return _HOLDS[self.comparator](value, self.value)

    def __str__(self) -> str:
        return f"{self.comparator} {format_quantity(self.value, unit=self.unit)}".replace(".0 ", " ")


def format_time_us(time_us: float) -> str:
    """Microseconds as torch.profiler prints them: ``1.234us``, ``1.234ms``, ``1.234s``."""
    if time_us >= _US_IN_S:
        return f"{time_us / _US_IN_S:.3f}s"
    if time_us >= _US_IN_MS:
        return f"{time_us / _US_IN_MS:.3f}ms"
    return f"{time_us:.3f}us"


def format_time(time_ns: float) -> str:
    """Nanoseconds as torch.profiler prints a time: ``1.234us``, ``1.234ms``, ``1.234s``."""
    return format_time_us(time_ns / NS_IN_US)


def format_time_share(part_ns: float, whole_ns: float) -> str:
    """A part of a time as torch.profiler prints it, ``12.34%``; ``NaN`` if the whole is 0."""
    return "NaN" if whole_ns == 0 else f"{part_ns * 100.0 / whole_ns:.2f}%"


def format_memory(size_bytes: int) -> str:
    """Bytes as torch.profiler prints them in tables: ``12 B``, ``1.50 KB`` (of 1024)."""
    for name, power in (("GB", 3), ("MB", 2), ("KB", 1)):
        if abs(size_bytes) >= _KIB**power:
            return f"{size_bytes / _KIB**power:.2f} {name}"
    return f"{size_bytes} B"


def format_flops(flops: int) -> str:
    """Floating point operations for a reader: ``12 FLOPs``, ``1.50 MFLOPs``."""
    for name, scale in _FLOPS_UNITS.items():
        # 999,999 would round to "1000.00 KFLOPs": it is a million already.
        if round(abs(flops) / (scale // 1000), 2) >= 1000:  # noqa: PLR2004
            return f"{flops / scale:.2f} {name}"
    return f"{flops} FLOPs"


def format_duration(time_ns: float) -> str:
    """Nanoseconds for a reader, in two or three figures: ``800 ns``, ``4.4 ms``, ``12.0 s``."""
    magnitude = abs(time_ns)
    for name, scale in (("s", NS_IN_S), ("ms", NS_IN_MS), ("µs", NS_IN_US)):
        # 999.96 µs would round to "1000.0 µs": it is a millisecond already.
        if round(magnitude / scale, 1) >= 1:
            return f"{time_ns / scale:.1f} {name}"
    return f"{time_ns:.0f} ns"


def format_precise_duration(time_ns: float) -> str:
    """Nanoseconds for a reader who compares two times, in three figures: ``812 ns``, ``4.42 ms``."""
    magnitude = abs(time_ns)
    for name, scale in (("s", NS_IN_S), ("ms", NS_IN_MS), ("µs", NS_IN_US)):
        if float(f"{magnitude / scale:.3g}") >= 1:
            figures = f"{time_ns / scale:#.3g}".removesuffix(".")
            return f"{figures if 'e' not in figures else f'{time_ns / scale:.0f}'} {name}"
    return f"{time_ns:.0f} ns"


def format_bytes(size_bytes: float) -> str:
    """Bytes for a reader: ``12 B``, ``1.2 MiB``."""
    for name, power in (("TiB", 4), ("GiB", 3), ("MiB", 2), ("KiB", 1)):
        if round(abs(size_bytes) / _KIB**power, 1) >= 1:
            return f"{size_bytes / _KIB**power:.1f} {name}"
    return f"{size_bytes:.0f} B"


def format_quantity(value: int, *, unit: Unit) -> str:
    """A value of ``unit`` for a reader."""
    match unit:
        case Unit.NS:
            return format_duration(value)
        case Unit.BYTES:
            return format_bytes(value)
        case Unit.FLOPS:
            return format_flops(value)
        case Unit.COUNT:
            return str(value)
        case Unit.PPM:
            return f"{value * 100 / EVERY_PPM:.1f} %"
        case Unit.THOUSANDTHS:
            return f"{value / ONE_IN_THOUSANDTHS:.1f}"
    assert_never(unit)


def format_change(value: int, *, unit: Unit) -> str:
    """A difference of ``unit`` with its sign: ``+2``, ``-0.3 MiB``, ``0``."""
    return ("+" if value > 0 else "") + format_quantity(value, unit=unit)


def parse_bytes(text: str) -> int:
    """``"64 MiB"`` as bytes, at least 0; KiB, MiB, GiB are powers of 1024, and KB, MB, GB of 1000."""
    value = parse_quantity(text, unit=Unit.BYTES)
    if value < 0:
        raise UsageError(f"{text.strip()!r} is below 0: no size is")
    return value


def parse_quantity(text: str, *, unit: Unit) -> int:
    """``"1.5 ms"`` as an integer of ``unit``; UsageError if it is not such a value."""
    units, kind, example = _WRITTEN[unit]
    match = _QUANTITY.fullmatch(text)
    scale = units.get(match[2]) or units.get(match[2].lower()) if match else None
    value = Decimal(match[1].replace("_", "")) * scale if match and scale else None
    # A fraction of a large unit is rounded. Half a call would become none or a whole one.
    if value is None or (scale == 1 and value != value.to_integral_value()):
        raise UsageError(f"{text.strip()!r} is not a {kind}: write it like {example!r}")
    return int(value.to_integral_value())


def parse_percent(text: str, *, where: str) -> Fraction:
    """``"2.5%"`` as a share; an error says `where` the text stands."""
    from fractions import Fraction  # noqa: PLC0415  # it loads decimals, and everybody needs units

    match = _PERCENT.fullmatch(text)
    if match is None:
        raise UsageError(f"{where}: {text!r} is not a percentage: write it like '2%'")
    return Fraction(match[1]) / 100


def check_between(option: str, value: float | None, least: float, most: float) -> None:
    """Raise `UsageError` for an option's number that is not from `least` to `most`."""
    if value is not None and not least <= value <= most:
        raise UsageError(f"{option}={value}: it must be a number from {least} to {most}")


def parse_limit(limit: object, *, unit: Unit) -> Bound:
    """A limit as users write it: ``"<= 64 MiB"``, ``"== 3"``, ``0`` in ``unit``; a bare value: at most."""
    comparator, value = Comparator.AT_MOST, limit
    if isinstance(limit, str):
        match = _LIMIT.fullmatch(limit)
        assert match is not None, "every text matches"
        comparator = Comparator("==" if match[1] == "=" else match[1] or "<=")
        value = parse_quantity(match[2], unit=unit)
    elif limit and unit in {Unit.PPM, Unit.THOUSANDTHS}:
        value = None  # 1 may be meant as a thousandth or as 1.0: text says it
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{limit!r} is not a limit: write it like {f'<= {_WRITTEN[unit][2]}'!r}")
    if value < 0:
        raise UsageError(f"{value} is not a limit: a limit is 0 or more")
    if value > MOST_IN_JSON and value is limit:  # a JSON file stores a limit given as text as that text
        raise UsageError(f"{value} is above {MOST_IN_JSON}, the most in a JSON file: leave the limit out")
    return Bound(comparator=comparator, value=value, unit=unit)


def parts_per_million(share: float) -> int:
    """A share above 0 in parts per million: never rounded to 0, nor up to the whole."""
    return EVERY_PPM if share >= 1 else min(max(round(share * EVERY_PPM), 1), EVERY_PPM - 1)


def format_share(share: float) -> str:
    """A share in percent: ``1%``, ``12.5%``."""
    return f"{100 * share:g}%"
