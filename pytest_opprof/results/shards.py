"""Join the runs of a CI's shards, or of a distributed program's ranks.

A shard has tests of its own; a rank measures the same tests as the others, at the same time. Rank 0 gives a
test's result, and the other ranks are compared with it.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_opprof.errors import UsageError
from pytest_opprof.metrics.host import INSTRUCTION_TOTALS, NATIVE_INSTRUCTIONS
from pytest_opprof.results.agreement import repeated
from pytest_opprof.results.files import read_run
from pytest_opprof.results.merge import shared
from pytest_opprof.results.names import bounded_notes
from pytest_opprof.results.run import Environment, Measurement, MeasurementStatus, Outcome, Run, TestResult
from pytest_opprof.wording import listed

# The details of a run's environment with its place among others (`capture.environment`).
RANK = "rank"
WORLD_SIZE = "world_size"
SHARD = "shard"  # ``2 of 3``; of a joined run ``1,2 of 3``
_PARTS = "parts"  # the run ids of a joined run's shards
_RUN_ID_LENGTH = 16
_LONGEST_DETAIL = 1024
_INSTRUCTIONS = frozenset(metric.name for metric in (*INSTRUCTION_TOTALS, NATIVE_INSTRUCTIONS))
_NAMED_AT_MOST = 10
# A document is untrusted: it must not claim more places than can be named.
_MOST_PLACES = 100_000
_MOST_DIGITS = 9
_MISSING = "missing: "
_OF_SHARDS = re.compile(rf"{_MISSING}(shard \d+ of \d+|\d+ of \d+ shards)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A run to be joined."""

    # The run. For a rank other than 0 without tests: these are read in turn, so that thousands of ranks are
    # never in memory together.
    run: Run
    where: str  # its name in sentences: its file
    read: Callable[[], tuple[TestResult, ...]] | None = None  # reads the tests of a run that lacks them

    @classmethod
    def of_file(cls, path: Path) -> Part:
        """A run's file; tests of ranks other than 0 are dropped until they are needed."""
        whole = cls(run=read_run(path), where=str(path))
        if whole.rank == 0:
            return whole
        return replace(whole, run=replace(whole.run, tests=()), read=lambda: read_run(path).tests)

    @property
    def tests(self) -> tuple[TestResult, ...]:
        """Its tests."""
        return self.run.tests if self.read is None else self.read()

    @property
    def rank(self) -> int:
        """Its rank; 0 without ranks."""
        text = self.run.environment.details.get(RANK, "")
        return int(text) if is_number(text) else 0

    @property
    def ids(self) -> frozenset[str]:
        """The run ids of the shards that it has: its own, unless it is a joined run."""
        told = self.run.environment.details.get(_PARTS)
        return frozenset(told.split(",") if told else [self.run.run_id[:_RUN_ID_LENGTH]])

    @property
    def place(self) -> tuple[frozenset[int], int]:
        """Which shards of how many it has; 0 and none if it does not say."""
        numbers, _, count = self.run.environment.details.get(SHARD, "").partition(" of ")
        if not all(map(is_number, (*numbers.split(","), count))):
            return frozenset(), 0
        return frozenset(map(int, numbers.split(","))), int(count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The result."""

    run: Run  # all tests; the gaps are among its notes
    notes: tuple[str, ...] = ()  # tests that were in several parts, and what disagreed
    gaps: tuple[str, ...] = ()  # what is known to be missing


def join(parts: Sequence[Part], *, expected: int | None = None, collected: Collection[str] = ()) -> Joined:
    """Join runs, one at least; a UsageError if their commits or environments do not allow it.

    `expected` is how many shards there should be, and `collected` has the node ids of all tests that some
    shard should have measured.
    """
    parts, notes = _each_once(parts)
    _refuse_other_commits(parts)
    environment, left_out = _environment(parts)
    by_rank: dict[int, list[Part]] = defaultdict(list)
    for part in parts:
        by_rank[part.rank].append(part)
    shards = by_rank.pop(0, [])
    tests, twice = _of_shards(shards)
    notes += [*left_out, *twice]
    of_ranks = {node_id: {"0": _figures(test)} for node_id, test in tests.items()}
    gaps = [*_missing_shards(shards, expected), *_missing_ranks(parts), *_missing_tests(tests, collected)]
    for rank, others in sorted(by_rank.items()):
        measured, twice = _of_shards(others)
        found, lacking = _compared(tests, measured, rank=rank)
        for node_id, test in measured.items():
            if node_id in of_ranks and test.is_usable:
                of_ranks[node_id][str(rank)] = _figures(test)
        notes += [*twice, *found]
        gaps += lacking
    told = [*(f"{_MISSING}{gap}" for gap in gaps), *notes]
    if by_rank:
        tests = {node_id: replace(test, ranks=of_ranks[node_id]) for node_id, test in tests.items()}
    run = _run_of(parts, environment, tuple(tests.values()), notes=told)
    return Joined(run=run, notes=tuple(notes), gaps=tuple(gaps))


def gaps_of(run: Run) -> tuple[str, ...]:
    """The gaps that a joined run names."""
    return tuple(note.removeprefix(_MISSING) for note in run.notes if note.startswith(_MISSING))


def _each_once(parts: Sequence[Part]) -> tuple[list[Part], list[str]]:
    """The parts that no other has, and notes on the others; a UsageError if two have some runs in common."""
    kept, notes = [], []
    holders: dict[str, Part] = {}
    for part in sorted(parts, key=lambda part: -len(part.ids)):
        found = part.ids & holders.keys()
        if not found:
            holders |= dict.fromkeys(part.ids, part)
            kept.append(part)
            continue
        first = holders[min(found)]
        if found != part.ids:
            raise UsageError(
                f"{first.where} and {part.where} have runs in common: join those they were made from"
            )
        how = "the same run as" if first.ids == part.ids else "a part of"
        notes.append(f"{part.where} is {how} {first.where}: it is counted once")
    return kept, notes


def _of_shards(shards: Sequence[Part]) -> tuple[dict[str, TestResult], list[str]]:
    """The tests of shards, and notes on those that are in two."""
    tests: dict[str, TestResult] = {}
    places: dict[str, str] = {}
    notes = []
    for part in shards:
        for test in part.tests:
            if test.node_id not in tests:
                tests[test.node_id], places[test.node_id] = test, part.where
                continue
            tests[test.node_id], how = _twice(tests[test.node_id], test)
            notes.append(f"{test.node_id} is in {places[test.node_id]} and {part.where}: {how}")
    return tests, notes


def _refuse_other_commits(parts: Sequence[Part]) -> None:
    first = parts[0]
    for part in parts[1:]:
        one, other = (each.run.commit.short if each.run.commit else "no commit" for each in (first, part))
        if one != other:
            raise UsageError(
                f"{first.where} is of {one} and {part.where} of {other}: join only runs of one commit"
            )


def _environment(parts: Sequence[Part]) -> tuple[Environment, list[str]]:
    """The fields of all, without differing ones that only times depend on."""
    first, environment = parts[0], parts[0].run.environment
    left_out: list[str] = []
    for part in parts[1:]:
        both = shared(environment, part.run.environment)
        if both.blocking:
            raise UsageError(
                f"{first.where} and {part.where} were measured in different environments "
                f"({', '.join(both.blocking)}): their counts cannot be compared or joined"
            )
        left_out += [f"{note} ({part.where})" for note in both.left_out]
        environment = Environment(fingerprint=both.fingerprint)
    details = {
        name: value
        for name, value in first.run.environment.details.items()
        if all(part.run.environment.details.get(name) == value for part in parts)
    }
    if len(parts) > 1:
        joined = {_PARTS: ",".join(sorted({name for part in parts if not part.rank for name in part.ids}))}
        numbers, counts = zip(*(part.place for part in parts), strict=True)
        if all(numbers) and len(set(counts)) == 1:
            joined[SHARD] = f"{','.join(map(str, sorted(frozenset[int]().union(*numbers))))} of {counts[0]}"
        details |= {name: text for name, text in joined.items() if text and len(text) <= _LONGEST_DETAIL}
    return replace(environment, details=details), left_out


def _twice(one: TestResult, other: TestResult) -> tuple[TestResult, str]:
    """A test that two shards ran: one result, and how they agree."""
    if one.outcome is not other.outcome and {one.outcome, other.outcome} & {Outcome.FAILED, Outcome.ERROR}:
        told = f"it {one.outcome} in the one and {other.outcome} in the other"
        measurement = Measurement(status=MeasurementStatus.INCONCLUSIVE, reason=told)
        return replace(one if one.outcome is Outcome.PASSED else other, measurement=measurement), told
    if not other.is_usable:
        return one, "the first counts"
    if not one.is_usable:
        return other, "the second counts"
    both = repeated(one, other, fresh_process=True)
    return both, _disagreement(one, both) or "they agree"


def _disagreement(before: TestResult, after: TestResult) -> str:
    """What became unstable, in words; may be empty."""
    found = [path for path in after.unstable if path not in before.unstable]
    paths = listed(found, most=_NAMED_AT_MOST)
    return f"they disagree in {paths}, so these are not judged" if found else ""


def _compared(
    tests: dict[str, TestResult], measured: Mapping[str, TestResult], *, rank: int
) -> tuple[list[str], list[str]]:
    """Compare another rank with rank 0's tests; a disagreement is unstable, a missing test a gap."""
    notes, lacking = [], []
    for node_id, test in tests.items():
        other = measured.get(node_id)
        if other is None or (test.is_usable and not other.is_usable):
            why = "was not measured" if other is None else other.measurement.reason or f"{other.outcome}"
            lacking.append(f"{node_id} on rank {rank}: it {why}")
            continue
        # A rank may run more Python code than others, such as the one that logs.
        totals = {name: value for name, value in other.totals.items() if name not in _INSTRUCTIONS}
        tests[node_id] = repeated(test, replace(other, totals=totals), fresh_process=False)
        how = _disagreement(test, tests[node_id])
        if how:
            notes.append(f"{node_id} on rank 0 and rank {rank}: {how}")
    more = [node_id for node_id in measured if node_id not in tests]
    return notes, lacking + [f"{node_id} on rank 0: rank {rank} has it" for node_id in more]


def _figures(test: TestResult) -> dict[str, int]:
    return {name: round(samples.mean) for name, samples in test.totals.items()}


def _missing_shards(shards: Sequence[Part], expected: int | None) -> Iterator[str]:
    """Missing shards that the user expects, or that a CI announced (``2 of 4``)."""
    told = [part.place for part in shards]
    wanted = expected if expected is not None else max((count for _, count in told), default=0)
    if all(numbers for numbers, _ in told):
        found = frozenset[int]().union(*(numbers for numbers, _ in told))
        yield from (
            f"shard {n} of {wanted}" for n in range(1, min(wanted, _MOST_PLACES) + 1) if n not in found
        )
    elif (lacking := wanted - sum(len(part.ids) for part in shards)) > 0:
        yield f"{lacking} of {wanted} shards"


def is_number(text: str) -> bool:
    """Whether an environment's detail is a rank, or the number of ranks."""
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def _missing_ranks(parts: Sequence[Part]) -> Iterator[str]:
    sizes = [part.run.environment.details.get(WORLD_SIZE, "") for part in parts]
    size = max((int(text) for text in sizes if is_number(text)), default=1)
    found = {part.rank for part in parts}
    yield from (f"rank {rank} of {size}" for rank in range(min(size, _MOST_PLACES)) if rank not in found)


def _missing_tests(tests: Mapping[str, TestResult], collected: Collection[str]) -> Iterator[str]:
    missing = [node_id for node_id in collected if node_id not in tests]
    if missing:
        names = listed(missing, most=_NAMED_AT_MOST)
        yield f"{len(missing)} of {len(collected)} collected tests: {names}"


def _run_of(
    parts: Sequence[Part], environment: Environment, tests: tuple[TestResult, ...], *, notes: Sequence[str]
) -> Run:
    runs = [part.run for part in parts]
    # Missing shards of a joined run may be here, and are looked for again.
    of_runs = dict.fromkeys(note for run in runs for note in run.notes if not _OF_SHARDS.fullmatch(note))
    names = {run.name for run in runs}
    ids = ",".join(sorted(run.run_id for run in runs))
    return replace(
        runs[0],
        # The same parts make the same run, in any order.
        run_id=hashlib.sha256(ids.encode("ascii", "replace")).hexdigest()[:_RUN_ID_LENGTH],
        created=min(run.created for run in runs),
        name=names.pop() if len(names) == 1 else None,
        environment=environment,
        notes=bounded_notes([*notes, *of_runs]),
        tests=tests,
    )
