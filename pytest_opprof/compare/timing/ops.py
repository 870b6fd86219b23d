"""Which op made a test slower: the second stage, inside the tests that the first one flagged."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from pytest_opprof.compare.timing.comparison import FALSE_DISCOVERIES, Direction, OpTime, Sides
from pytest_opprof.compare.timing.samples import Readings
from pytest_opprof.compare.timing.significance import combined_p, discoveries
from pytest_opprof.compare.timing.verdicts import p_of
from pytest_opprof.kinds import OpKind
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import OpRow
from pytest_opprof.units import NS_IN_US, format_precise_duration

_Key: TypeAlias = tuple[str, OpKind, bool]
_Rows: TypeAlias = "Mapping[_Key, OpRow]"
# A test's rows in each process: the base's processes, and the head's.
_Processes: TypeAlias = "tuple[Sequence[_Rows], Sequence[_Rows]]"
_KINDS: Final = frozenset({OpKind.OP, OpKind.RANGE})
# An op must change by this share of the test's time, or by this much, to be its cause.
_LEAST_SHARE: Final = 0.005
_LEAST_NS: Final = 20 * NS_IN_US
_MOST_OPS: Final = 20


def explain(rounds: Sequence[Readings], sides: Sides, direction: Direction) -> tuple[OpTime, ...]:
    """The ops of a flagged test that went its way, the largest change first.

    Benjamini and Hochberg's procedure finds the significant ones among all ops of the test, by both rounds
    together. If it finds none, only the op that changed most is given. `sides` are the first round's times.
    """
    found = [_rows_of(each) for each in rounds]
    both = [rows for base, _ in found for rows in base], [rows for _, head in found for rows in head]
    keys = _keys(rounds, found)
    towards = 1 if direction is Direction.SLOWER else -1
    p_values = [combined_p([p_of(_self_times(each, key), direction) for each in found]) for key in keys]
    hits = discoveries(p_values, rate=FALSE_DISCOVERIES)
    ops = [_op_time(both, key, is_significant=hit) for key, hit in zip(keys, hits, strict=True)]
    least_ns = min(_LEAST_SHARE * sides.quartiles[0], _LEAST_NS)
    ops = [op for op in ops if op.rise_ns * towards >= least_ns]
    ops.sort(key=lambda op: -op.rise_ns * towards)
    return tuple([op for op in ops if op.is_significant] or ops[:1])[:_MOST_OPS]


def cause_of(ops: Sequence[OpTime], sides: Sides) -> str:
    """A test's change in few words: ``aten::addmm +290 µs: same calls, slower``."""
    base_ns, head_ns = sides.quartiles
    half = abs(head_ns - base_ns) / 2
    if not ops or not ops[0].is_significant:
        if not ops or abs(ops[0].rise_ns) < half:
            return "no single op stands out"
        return f"mostly {_part(ops[0])} (by itself within noise)"
    # A second op if the first is not most of it.
    told = ops[:1] if abs(ops[0].rise_ns) >= half else ops[:2]
    return ", ".join(map(_part, told))


def _part(op: OpTime) -> str:
    sign = "+" if op.rise_ns > 0 else ""
    name = "outside of its ops" if op.name == STEP_NAME else op.name
    return f"{name} {sign}{format_precise_duration(op.rise_ns)}: {_how(op)}"


def _how(op: OpTime) -> str:
    if op.base_count == op.head_count:
        return f"same calls, {'slower' if op.rise_ns > 0 else 'faster'}"
    many = f"{op.base_count} -> {op.head_count}"
    return f"more calls, {many}" if op.head_count > op.base_count else f"fewer calls, {many}"


def _rows_of(test: Readings) -> _Processes:
    base, head = ([{row.key: row for row in each.ops} for each in side] for side in (test.base, test.head))
    return base, head


def _keys(rounds: Sequence[Readings], found: Sequence[_Processes]) -> list[_Key]:
    """The ops to look at. If a process omitted rows, a missing op may be among them."""
    processes = [rows for base, head in found for rows in (*head, *base)]
    is_cut_off = any(each.ops_omitted for test in rounds for each in (*test.base, *test.head))
    return [
        key
        for key in dict.fromkeys(key for rows in processes for key in rows)
        if key[1] in _KINDS and not key[2] and not (is_cut_off and any(key not in rows for rows in processes))
    ]


def _op_time(processes: _Processes, key: _Key, *, is_significant: bool) -> OpTime:
    base_ns, head_ns = _self_times(processes, key).quartiles
    base_count, head_count = (
        round(statistics.median(rows[key].count.low if key in rows else 0 for rows in side))
        for side in processes
    )
    return OpTime(
        name=key[0],
        kind=key[1],
        base_ns=base_ns,
        head_ns=head_ns,
        base_count=base_count,
        head_count=head_count,
        is_significant=is_significant,
    )


def _self_times(processes: _Processes, key: _Key) -> Sides:
    """Each process's self CPU time in its fastest step."""
    base_ns, head_ns = (
        tuple(rows[key].self_cpu_time_total_ns.low if key in rows else 0 for rows in side)
        for side in processes
    )
    return Sides(base_ns=base_ns, head_ns=head_ns)
