"""A job of many ranks as values, and two jobs side by side: what `fleet` finds and `report` shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

SUMMARY_SCHEMA: Final = "pytest-opprof/fleet-summary"
DIFFERENCE_SCHEMA: Final = "pytest-opprof/fleet-difference"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSummary:
    """One rank of a job; times are nanoseconds of a step, the mean over its steps.

    Attributes:
        lateness_ns: For each step of the job, how much later than the median rank it came to collectives,
            summed over them; None where it has no such step, or clocks do not align.
        clock_offset_ns: How far its clock is ahead of the median rank's.
    """

    rank: int
    host: str = ""
    clock_offset_ns: int = 0
    lateness_ns: tuple[int | None, ...] = ()
    step_ns: int = 0
    compute_ns: int = 0
    exposed_communication_ns: int = 0
    launch_bound_ns: int = 0
    host_ns: int = 0
    synchronize_ns: int = 0
    queued_ns: int = 0
    peak_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """A rank that the others wait for.

    Attributes:
        lateness_ns: In a step, the median over its steps.
        share: Of a step of the median rank.
        q: The share of false alarms among ranks that are named at this threshold.
        arises: Where its time goes that the others do not spend, in words.
    """

    rank: int
    lateness_ns: int
    share: float
    q: float
    arises: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummary:
    """What a window of a job says.

    Attributes:
        world_size: Ranks that there should be.
        steps: The steps' numbers.
        collectives: Collectives, each counted once for all of its ranks.
        clock_skew_ns: The ninth decile of what is left between ends of collectives once clocks are aligned.
        ranks: Those that were read.
        problems: Why the job cannot be judged; empty where it can.
        notes: Sentences for the reader.
    """

    job: str
    window: str
    world_size: int
    steps: tuple[int, ...]
    collectives: int
    clock_skew_ns: int
    ranks: tuple[RankSummary, ...]
    stragglers: tuple[Straggler, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """An op's time on its own in a step: quantiles over the ranks, nanoseconds."""

    p10: float = 0.0
    p50: float = 0.0
    p90: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpChange:
    """One op in two jobs.

    Attributes:
        base: Calls in a step, the fewest and the most of any rank.
        ranks: Of the ranks that both jobs have, how many call it more often, in every step.
        reason: Why the change fails the gate; "" where it does not.
    """

    name: str
    on_device: bool
    base: tuple[int, int]
    head: tuple[int, int]
    base_ns: Spread
    head_ns: Spread
    ranks: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDifference:
    """Two jobs, op by op.

    Attributes:
        ops: What changed, failures first, then the largest change of time.
        same: How many ops did not.
        problems: Why they cannot be compared; empty where they can.
    """

    base: str
    head: str
    ranks: int
    windows: tuple[int, int]
    ops: tuple[OpChange, ...]
    same: int
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[OpChange, ...]:
        """What fails the gate."""
        return tuple(op for op in self.ops if op.reason)


def summary_to_document(summary: FleetSummary) -> dict[str, Any]:
    """A summary as JSON values."""
    return {"schema": SUMMARY_SCHEMA, "schema_version": _VERSION, **asdict(summary)}


def difference_to_document(found: FleetDifference) -> dict[str, Any]:
    """A difference as JSON values."""
    return {"schema": DIFFERENCE_SCHEMA, "schema_version": _VERSION, **asdict(found)}


def summary_from_document(document: Mapping[str, Any]) -> FleetSummary:
    """A summary again."""
    told = {one.name: document[one.name] for one in fields(FleetSummary)}
    for name in ("steps", "problems", "notes"):
        told[name] = tuple(told[name])
    ranks = [{**rank, "lateness_ns": tuple(rank["lateness_ns"])} for rank in told["ranks"]]
    told["ranks"] = tuple(RankSummary(**rank) for rank in ranks)
    told["stragglers"] = tuple(Straggler(**one) for one in told["stragglers"])
    return FleetSummary(**told)
