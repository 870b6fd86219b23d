"""Compare two jobs op by op: each rank's exact counts may gate, and times too with enough windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, Final

from pytest_opprof.errors import UsageError
from pytest_opprof.fleet.database import Database
from pytest_opprof.fleet.manifest import Status, missing_ranks
from pytest_opprof.fleet.summary import file_problems
from pytest_opprof.fleet.tables import Window
from pytest_opprof.results.fleet import FleetDifference, OpChange, Spread
from pytest_opprof.results.names import MAX_NAME, bounded, bounded_text
from pytest_opprof.wording import counted

# A job's time in a window is one sample. By chance, four samples all exceed four others once in 70 times.
FEWEST_WINDOWS: Final = 4
_TIME_FLOOR: Final = 0.05
_TIME_FLOOR_NS: Final = 100_000
_BY_CHANCE: Final = frozenset(
    {
        *(f"{api}{what}Query" for api in ("cuda", "cu", "hip") for what in ("Event", "Stream")),
        # Kineto's names of a profiler's own work (CUPTI's overhead records).
        *("Activity Buffer Request", "Buffer Flush", "Command Buffer Full", "Driver Compiler"),
        *("Instrumentation", "Lazy Function Loading", "Resource", "Runtime Triggered Module Loading"),
        "UVM Activity Init",
    }
)


class Gate(StrEnum):
    """What can fail a comparison of jobs."""

    EXACT = "exact"
    TIME = "time"


def parse_gates(text: str) -> frozenset[Gate]:
    """Parse gates such as ``exact,time``; ``none`` for none."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    try:
        return frozenset(Gate(name) for name in names if name != "none")
    except ValueError as error:
        raise UsageError(f"--fail-on {text}: give exact, time, both with a comma between, or none") from error


def compare(
    base: Sequence[Window], head: Sequence[Window], *, gates: frozenset[Gate] = frozenset({Gate.EXACT})
) -> FleetDifference:
    """Compare the windows of an earlier and a later job, over the ranks that both have."""
    if base[0].job == head[0].job:
        raise UsageError(f"{base[0].job} is given twice: compare it with another job")
    database = Database([*base, *head])
    for side, windows in (("base", base), ("head", head)):
        _sum_up(database, side, windows)
    problems = [
        f"{windows[0].job}: {told}" for windows in (base, head) for told in _problems(database, windows)
    ]
    base_only, head_only, both = _shared(database, "rank")
    if base_only or head_only:
        problems.append(
            f"other ranks: {counted(base_only, 'rank')} only of {base[0].job}, "
            f"{counted(head_only, 'rank')} only of {head[0].job}"
        )
    gone, added, _ = _shared(database, "test")
    if gone:
        problems.append(f"missing: {head[0].job} lacks {counted(gone, 'test')} of {base[0].job}")
    notes = [f"{counted(added, 'test')} only in {head[0].job}"] if added else []
    is_enough = min(len(base), len(head)) >= FEWEST_WINDOWS
    slower = _slower(database, base[0].job) if is_enough and Gate.TIME in gates else set()
    ops = [_change(row, gates=gates, slower=slower) for row in database.query(_COMPARED)]
    changed = [op for op in ops if op is not None]
    changed.sort(key=lambda op: (not op.reason, -abs(op.head_ns.p50 - op.base_ns.p50), op.name))
    if not is_enough:
        fewest = f"{len(base)} and {len(head)} windows, but {FEWEST_WINDOWS} of each are needed"
        notes.append(f"times are not gated: {fewest}")
    return FleetDifference(
        base=base[0].job,
        head=head[0].job,
        ranks=both,
        windows=(len(base), len(head)),
        ops=tuple(changed),
        same=len(ops) - len(changed),
        problems=tuple(map(bounded_text, problems)),
        notes=tuple(notes),
    )


def _problems(database: Database, windows: Iterable[Window]) -> Iterator[str]:
    for window in windows:
        files = database.files[window]
        yield from file_problems(files)
        if missing := missing_ranks(files, expected=None):
            yield f"missing: {counted(len(missing), 'rank')}, as opprof fleet show {window.job} lists them"
        if all(one.status is not Status.OK for one in files):
            yield f"window {window.window} has no rank that was read"


def _shared(database: Database, column: str) -> tuple[int, int, int]:
    """Count the ranks or tests that only the base has, that only the head has, and that both have."""
    ((base_only, head_only, both),) = database.query(
        f"""SELECT count(*) FILTER (b.it IS NULL), count(*) FILTER (a.it IS NULL), count(a.it = b.it)
        FROM (SELECT DISTINCT {column} AS it FROM base_ranks) a
        FULL JOIN (SELECT DISTINCT {column} AS it FROM head_ranks) b ON a.it = b.it"""  # noqa: S608 - ours
    )
    return base_only, head_only, both


def _sum_up(database: Database, side: str, windows: Sequence[Window]) -> None:
    """Store each op's fewest and most calls in any step of a rank, and its mean time per step."""
    job = windows[0].job
    database.query(
        f"""CREATE OR REPLACE TEMP TABLE {side}_ranks AS
        SELECT rank, test, count(*) AS steps FROM steps WHERE job = '{job}' GROUP BY rank, test"""  # noqa: S608 - a job's name has no quotes
    )
    database.query(
        f"""CREATE OR REPLACE TEMP TABLE {side}_ops AS
        WITH summed AS (
            SELECT name, test, on_device, rank, min(count) AS low, max(count) AS high, count(*) AS seen,
                sum(self_ns) AS ns
            FROM ops WHERE job = '{job}' AND NOT (is_annotation AND on_device)
            GROUP BY name, test, on_device, rank)
        SELECT name, test, on_device, rank, CASE WHEN seen < steps THEN 0 ELSE low END AS low, high,
            ns / steps AS ns
        FROM summed JOIN {side}_ranks USING (rank, test)"""  # noqa: S608
    )


# A rank calls an op more often if each of its steps has more calls than any step in the other job. How often
# a program polls, and what its profiler does for itself, is chance.
_COMPARED: Final = """
    WITH shared AS (SELECT rank, test FROM base_ranks JOIN head_ranks USING (rank, test)),
    of_base AS (SELECT * FROM base_ops JOIN shared USING (rank, test)),
    of_head AS (SELECT * FROM head_ops JOIN shared USING (rank, test)),
    pairs AS (
        SELECT coalesce(a.name, b.name) AS name, coalesce(a.test, b.test) AS test,
            coalesce(a.on_device, b.on_device) AS on_device,
            coalesce(a.low, 0) AS a_low, coalesce(a.high, 0) AS a_high, coalesce(a.ns, 0) AS a_ns,
            coalesce(b.low, 0) AS b_low, coalesce(b.high, 0) AS b_high, coalesce(b.ns, 0) AS b_ns
        FROM of_base a FULL JOIN of_head b
        ON a.name = b.name AND a.test = b.test AND a.on_device = b.on_device AND a.rank = b.rank)
    SELECT name, test, on_device, min(a_low), max(a_high), min(b_low), max(b_high),
        count(*) FILTER (b_low > a_high), count(*) FILTER (b_high < a_low), bool_and(a_low = a_high),
        quantile_cont(a_ns, [0.1, 0.5, 0.9]), quantile_cont(b_ns, [0.1, 0.5, 0.9])
    FROM pairs GROUP BY name, test, on_device"""


def _change(
    row: tuple[Any, ...], *, gates: frozenset[Gate], slower: set[tuple[str, str, bool]]
) -> OpChange | None:
    name, test, on_device, *counts, more, fewer, is_exact, base_ns, head_ns = row
    is_exact = is_exact and Gate.EXACT in gates and name not in _BY_CHANCE
    base, head = (counts[0], counts[1]), (counts[2], counts[3])
    is_same = base == head and not more and not fewer
    if is_same and abs(head_ns[1] - base_ns[1]) < max(_TIME_FLOOR * base_ns[1], _TIME_FLOOR_NS):
        return None
    reason = ""
    if is_exact and more:
        reason = "runs more often"
    elif is_exact and base[0] == base[1] and head[1] > base[1]:
        reason = "ranks or steps disagree, and agreed before"
    elif (name, test, on_device) in slower:
        reason = f"slower in each window, by {_TIME_FLOOR:.0%} or more"
    return OpChange(
        name=bounded(f"{test}: {name}" if test else name, length=MAX_NAME),
        on_device=on_device,
        base=base,
        head=head,
        base_ns=_spread(base_ns),
        head_ns=_spread(head_ns),
        ranks=more,
        reason=reason,
    )


def _spread(ns: Sequence[float]) -> Spread:
    return Spread(p10=round(ns[0]), p50=round(ns[1]), p90=round(ns[2]))


def _slower(database: Database, base: str) -> set[tuple[str, str, bool]]:
    """The ops whose time (median over ranks) is longer in each window of the head than in any of the base.

    Collectives are left out: their time depends on other ranks.
    """
    rows = database.query(
        f"""WITH of_rank AS (
            SELECT job, "window", name, test, on_device, ops.rank, sum(self_ns) / any_value(steps) AS ns
            FROM ops JOIN (
                SELECT job, "window", file, test, count(*) AS steps FROM steps GROUP BY ALL)
                USING (job, "window", file, test)
            WHERE NOT is_annotation AND NOT contains(name, 'nccl') GROUP BY ALL),
        of_window AS (
            SELECT job, "window", name, test, on_device, median(ns) AS ns FROM of_rank GROUP BY ALL),
        sides AS (
            SELECT name, test, on_device, max(ns) FILTER (job = ?) AS base,
                min(ns) FILTER (job <> ?) AS head
            FROM of_window GROUP BY name, test, on_device)
        SELECT name, test, on_device FROM sides
        WHERE head > base * {1 + _TIME_FLOOR} AND head > base + {_TIME_FLOOR_NS}""",  # noqa: S608
        base,
        base,
    )
    return {(name, test, on_device) for name, test, on_device in rows}
