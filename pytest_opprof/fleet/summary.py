"""Sum up one window of a job: missing ranks, late ranks and why, and where device time goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import median
from typing import Final

from pytest_opprof.fleet.database import Database
from pytest_opprof.fleet.manifest import RankFile, Status, missing_ranks
from pytest_opprof.fleet.rank_rows import TIMES
from pytest_opprof.fleet.stragglers import FEWEST_RANKS, late_ranks
from pytest_opprof.fleet.tables import Window
from pytest_opprof.results.fleet import FleetSummary, RankSummary, Straggler
from pytest_opprof.results.names import MAX_NAME, bounded, bounded_text
from pytest_opprof.units import EVERY_PPM, format_duration
from pytest_opprof.wording import counted, listed

_NAMED_AT_MOST: Final = 20
# How far a collective's ends may be apart after alignment: in a ring they are not simultaneous.
_MOST_SKEW_NS: Final = 500_000
_CAUSES: Final = {
    "compute_ns": "computing",
    "launch_bound_ns": "launch-bound",
    "host_ns": "host code",
    "synchronize_ns": "synchronizing",
    "queued_ns": "queued work",
    "copy_ns": "copies",
}
_KEY: Final = "step, group_name, group_first, group_size, name, instance"


def summarize(window: Window, *, expected: int | None = None) -> FleetSummary:
    """Sum up a window with `expected` ranks, by default as many as the traces say."""
    database = Database([window])
    files = database.files[window]
    missing = missing_ranks(files, expected=expected)
    unread = missing or any(one.status in {Status.FAILED, Status.LOST} for one in files)
    clocks = _clocks(database, files, is_whole=not unread)
    ranks = _ranks(database, clocks)
    lateness = {one.rank: [late for late in one.lateness_ns if late is not None] for one in ranks}
    problems = [*file_problems(files), *missing_problem(missing), *clocks.problems]
    late = late_ranks(lateness) if clocks.is_aligned and not unread else []
    step_ns = median(one.step_ns for one in ranks)
    notes = []
    if clocks.is_aligned and sum(map(bool, lateness.values())) < FEWEST_RANKS:
        notes.append(f"no stragglers are named among fewer than {FEWEST_RANKS} ranks")
    return FleetSummary(
        job=window.job,
        window=window.window,
        world_size=len(ranks) + len(missing),
        steps=clocks.steps,
        collectives=clocks.collectives,
        clock_skew_ns=clocks.skew_ns,
        ranks=tuple(ranks),
        stragglers=tuple(
            Straggler(
                rank=one.rank,
                lateness_ns=round(one.lateness_ns),
                share_ppm=round(one.lateness_ns / step_ns * EVERY_PPM) if step_ns else 0,
                q_ppm=round(one.q * EVERY_PPM),
                arises=bounded_text(_arises(database, one.rank)),
            )
            for one in late
        ),
        problems=tuple(map(bounded_text, problems)),
        notes=tuple(notes),
    )


def file_problems(files: Sequence[RankFile]) -> Iterator[str]:
    """A sentence for each file that does not count."""
    for one in files:
        if one.status is not Status.OK:
            yield f"{one.status}: {one.title} ({one.path}): {one.error}"


def missing_problem(ranks: Sequence[int]) -> Iterator[str]:
    """A sentence that names the missing ranks, if any."""
    if ranks:
        named = listed(list(map(str, ranks)), most=_NAMED_AT_MOST)
        yield f"missing: {counted(len(ranks), 'rank')}: {named}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clocks:
    """The ranks' clock offsets, and their lateness by aligned clocks."""

    offsets: Mapping[int, int]
    lateness: Mapping[tuple[int, int], int]
    steps: tuple[int, ...]
    collectives: int
    skew_ns: int
    problems: tuple[str, ...]

    @property
    def is_aligned(self) -> bool:
        return bool(self.collectives) and not self.problems


def _clocks(database: Database, files: Sequence[RankFile], *, is_whole: bool) -> _Clocks:
    good = [one for one in files if one.status is Status.OK]
    origin = min(one.trace_start_ns for one in good)
    steps = tuple(step for (step,) in database.query("SELECT DISTINCT step FROM steps ORDER BY step"))
    database.query(
        f"""CREATE OR REPLACE TEMP TABLE joint AS
        SELECT rank, {_KEY}, start_ns + trace_start_ns - {origin} AS start,
            start_ns + duration_ns + trace_start_ns - {origin} AS finish, host
        FROM collectives JOIN (SELECT file, trace_start_ns, host FROM ranks WHERE status = 'ok') USING (file)
        WHERE is_joint"""  # noqa: S608 - names and numbers of ours
    )
    database.query(
        f"""CREATE OR REPLACE TEMP TABLE instances AS
        SELECT {_KEY}, count(*) AS members, count(DISTINCT rank) AS ranks, median(finish) AS finish
        FROM joint GROUP BY ALL"""  # noqa: S608
    )
    ((collectives, unmatched),) = database.query(
        f"""SELECT count(*), count(*) FILTER (members <> ranks OR ranks <>
            CASE WHEN group_size > 0 THEN group_size ELSE {len(good)} END) FROM instances"""  # noqa: S608
    )
    # A trace may begin or end within a step, so a few unmatched collectives are allowed.
    problems = []
    if is_whole and unmatched * 20 > collectives:
        problems.append(f"unmatched: {unmatched} of {collectives} collectives lack some of their ranks")
    offsets, skew = _offsets(database)
    if skew > _MOST_SKEW_NS:
        problems.append(
            f"unaligned clocks: ends of collectives are {format_duration(skew)} apart after alignment "
            f"({format_duration(_MOST_SKEW_NS)} at most)"
        )
    return _Clocks(
        offsets=offsets,
        lateness={} if problems else _lateness(database),
        steps=steps,
        collectives=collectives,
        skew_ns=skew,
        problems=tuple(problems),
    )


def _offsets(database: Database) -> tuple[dict[int, int], int]:
    """Each rank's clock offset from the median, and the remaining skew; ranks of one host share a clock."""
    database.query(
        f"""CREATE OR REPLACE TEMP TABLE offsets AS
        WITH apart AS (
            SELECT rank, CASE WHEN host = '' THEN rank::VARCHAR ELSE 'host ' || host END AS clock,
                joint.finish - instances.finish AS apart
            FROM joint JOIN instances USING ({_KEY}) WHERE members > 1),
        clocks AS (SELECT clock, median(apart) AS offset_ns FROM apart GROUP BY clock)
        SELECT rank, any_value(offset_ns) AS offset_ns,
            quantile_cont(abs(apart - offset_ns), 0.9) AS remains
        FROM apart JOIN clocks USING (clock) GROUP BY rank"""  # noqa: S608
    )
    rows = database.query("SELECT rank, offset_ns, remains FROM offsets")
    skew = median(remains for _, _, remains in rows) if rows else 0
    return {rank: round(offset) for rank, offset, _ in rows}, round(skew)


def _lateness(database: Database) -> dict[tuple[int, int], int]:
    rows = database.query(
        f"""WITH aligned AS (
            SELECT {_KEY}, rank, start - offset_ns AS start FROM joint JOIN offsets USING (rank)),
        middles AS (SELECT {_KEY}, median(start) AS middle, count(*) AS members FROM aligned GROUP BY ALL)
        SELECT rank, step, sum(start - middle) FROM aligned JOIN middles USING ({_KEY})
        WHERE members > 1 GROUP BY rank, step"""  # noqa: S608
    )
    return {(rank, step): round(late) for rank, step, late in rows}


def _ranks(database: Database, clocks: _Clocks) -> list[RankSummary]:
    times = [field.name for field in fields(RankSummary) if field.name in TIMES]
    means = ", ".join(f"avg({name})" for name in ("duration_ns", *times))
    rows = database.query(
        f"""SELECT rank, any_value(host), max(steps.peak_bytes), {means} FROM steps JOIN
        (SELECT file, host FROM ranks WHERE status = 'ok') USING (file) GROUP BY rank ORDER BY rank"""  # noqa: S608
    )
    return [
        RankSummary(
            rank=rank,
            host=bounded(host, length=MAX_NAME),
            clock_offset_ns=clocks.offsets.get(rank, 0),
            lateness_ns=tuple(clocks.lateness.get((rank, step)) for step in clocks.steps),
            step_ns=round(step_ns),
            peak_bytes=peak,
            **{name: round(value) for name, value in zip(times, values, strict=True)},
        )
        for rank, host, peak, step_ns, *values in rows
    ]


def _arises(database: Database, rank: int) -> str:
    """Why a rank takes longer than the median rank: the largest cause, and the op with most of it."""
    means = ", ".join(f"avg({name}) AS {name}" for name in _CAUSES)
    excess = ", ".join(f"max({name}) FILTER (rank = {rank}) - median({name})" for name in _CAUSES)
    ((*values,),) = database.query(
        f"SELECT {excess} FROM (SELECT rank, {means} FROM steps GROUP BY rank)"  # noqa: S608
    )
    most, cause = max(zip(values, _CAUSES, strict=True))
    if most <= 0:
        return "in no single cause"
    told = f"{_CAUSES[cause]}, +{format_duration(most)} a step"
    op = _op_of(database, rank, on_device=cause == "compute_ns")
    return f"{told}, most in {op[0]} (+{op[1]:.0%})" if op else told


def _op_of(database: Database, rank: int, *, on_device: bool) -> tuple[str, float] | None:
    rows = database.query(
        """WITH of_rank AS (
            SELECT name, rank, sum(self_ns) AS ns FROM ops
            WHERE on_device = ? AND NOT is_annotation AND NOT contains(name, 'nccl') GROUP BY name, rank),
        excess AS (
            SELECT name, max(ns) FILTER (rank = ?) AS own, median(ns) AS middle FROM of_rank GROUP BY name)
        SELECT name, own / middle - 1 FROM excess WHERE own > middle AND middle > 0
        ORDER BY own - middle DESC LIMIT 1""",
        on_device,
        rank,
    )
    return rows[0] if rows else None
