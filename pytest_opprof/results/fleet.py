"""A job of many ranks as values, and two jobs side by side: `fleet` makes and `report` shows them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pytest_opprof.results.files import parse, read_bytes, shown
from pytest_opprof.results.members import Document, from_members, to_members
from pytest_opprof.results.schema import Contract, contract_of, validate


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSummary:
    """One rank of a job; times are nanoseconds of a step, the mean over its steps."""

    rank: int
    host: str = ""
    clock_offset_ns: int = 0  # how far its clock is ahead of the median rank's
    # For each step of the job, how much later than the median rank it came to collectives, summed over them;
    # None if it has no such step, or clocks do not align.
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
    """A rank that the others wait for."""

    rank: int
    lateness_ns: int  # per step, the median over its steps
    share_ppm: int  # the same, in millionths of the median rank's step
    q_ppm: int  # false alarms per million ranks named at this threshold
    arises: str  # where its additional time goes, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummary:
    """A window of a job."""

    job: str
    window: str
    world_size: int  # expected ranks
    steps: tuple[int, ...]
    collectives: int  # collectives, each counted once for all of its ranks
    clock_skew_ns: int  # the ninth decile of differences between collectives' ends after clocks were aligned
    ranks: tuple[RankSummary, ...]  # the ranks read
    stragglers: tuple[Straggler, ...]
    problems: tuple[str, ...]  # why the job cannot be judged; empty if it can
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """An op's self time in a step: quantiles over the ranks, nanoseconds."""

    p10: int = 0
    p50: int = 0
    p90: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpChange:
    """One op in two jobs."""

    name: str
    on_device: bool
    base: tuple[int, int]  # calls in a step, the fewest and the most of any rank
    head: tuple[int, int]
    base_ns: Spread
    head_ns: Spread
    ranks: int = 0  # how many of both jobs' common ranks call it more often, in every step
    reason: str = ""  # why the change fails the gate; "" if it does not


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDifference:
    """Two jobs, op by op."""

    base: str
    head: str
    ranks: int
    windows: tuple[int, int]
    ops: tuple[OpChange, ...]  # the changed ops, failures first, then by change of time
    same: int  # how many ops did not change
    problems: tuple[str, ...]  # why they cannot be compared; empty if they can
    notes: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[OpChange, ...]:
        """The failing ops."""
        return tuple(op for op in self.ops if op.reason)


Fleet: TypeAlias = FleetSummary | FleetDifference


def fleet_to_document(found: Fleet) -> Document:
    """A job or two in the shape of fleet-summary.schema.json or fleet-difference.schema.json."""
    contract = Contract.FLEET_SUMMARY if isinstance(found, FleetSummary) else Contract.FLEET_DIFFERENCE
    return {"kind": contract.kind, "schema_version": contract.schema_version, **to_members(found)}


def fleet_from_document(document: Document) -> Fleet:
    """The job or the two jobs of a document, which the schema of its kind accepted."""
    if document["kind"] == Contract.FLEET_SUMMARY.kind:
        return from_members(FleetSummary, document)
    return from_members(FleetDifference, document)


def read_fleet(path: Path) -> Fleet | None:
    """A file's job, or its two jobs; None if it is another kind of document."""
    document, where = parse(read_bytes(path), where=shown(path)), shown(path)
    contract = contract_of(document, where=where)
    if contract not in {Contract.FLEET_SUMMARY, Contract.FLEET_DIFFERENCE}:
        return None
    return fleet_from_document(validate(document, contract, where=where))
