"""A job of many ranks as values, and two jobs side by side: what `fleet` finds and `report` shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pytest_opprof.results.files import parse, read_bytes, shown
from pytest_opprof.results.members import Document, from_members, to_members
from pytest_opprof.results.schema import Contract, contract_of, validate


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
        share_ppm: The same, of a million parts of the median rank's step.
        q_ppm: Of a million ranks that are named at this threshold, how many are false alarms.
        arises: Where its time goes that the others do not spend, in words.
    """

    rank: int
    lateness_ns: int
    share_ppm: int
    q_ppm: int
    arises: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummary:
    """What a window of a job says.

    Attributes:
        world_size: Ranks that there should be.
        collectives: Collectives, each counted once for all of its ranks.
        clock_skew_ns: The ninth decile of what is left between ends of collectives once clocks are aligned.
        ranks: Those that were read.
        problems: Why the job cannot be judged; empty where it can.
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

    p10: int = 0
    p50: int = 0
    p90: int = 0


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


Fleet: TypeAlias = FleetSummary | FleetDifference


def fleet_to_document(found: Fleet) -> Document:
    """A job or two in the shape of fleet-summary.schema.json or fleet-difference.schema.json."""
    contract = Contract.FLEET_SUMMARY if isinstance(found, FleetSummary) else Contract.FLEET_DIFFERENCE
    return {"kind": contract.kind, "schema_version": contract.schema_version, **to_members(found)}


def fleet_from_document(document: Document) -> Fleet:
    """The job, or the two, that a document holds.

    Args:
        document: What the schema of its kind accepted.
    """
    if document["kind"] == Contract.FLEET_SUMMARY.kind:
        return from_members(FleetSummary, document)
    return from_members(FleetDifference, document)


def read_fleet(path: Path) -> Fleet | None:
    """The job, or the two, that a file holds; None where it holds another kind of document.

    Raises:
        StoreError: The file cannot be read.
        DocumentError: Its schema refuses it, or it is not one of ours.
    """
    document, where = parse(read_bytes(path), where=shown(path)), shown(path)
    contract = contract_of(document, where=where)
    if contract not in {Contract.FLEET_SUMMARY, Contract.FLEET_DIFFERENCE}:
        return None
    return fleet_from_document(validate(document, contract, where=where))
