"""Count the instructions of calls, Python's or the machine's, without recording anything else."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol

from pytest_opprof.capture.instructions import Counted, InstructionCounter
from pytest_opprof.errors import CaptureUnavailableError
from pytest_opprof.metrics.host import INSTRUCTION_TOTALS, NATIVE_INSTRUCTIONS
from pytest_opprof.metrics.metric import Metric, Source
from pytest_opprof.plugin.calls import CallAtFixedDepth, Calls, is_of_the_call
from pytest_opprof.results.run import TestResult

# Caches may fill in the first calls; a count that does not settle in so many varies.
_MOST_CALLS: Final = 4
# Python specializes code after so many calls (PEP 659). Longer calls reach that themselves.
_WARM_CALLS: Final = 8
_LONG_CALL: Final = 100_000_000  # machine instructions


class Counter(Protocol):
    """Counts."""

    def start(self) -> None:
        """Count from here on."""

    def stop(self) -> Counted:
        """Stop counting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is counted, and how."""

    metrics: tuple[Metric, ...]
    source: Source  # its name in documents
    counter: Callable[[], Counter]  # makes the counter; raises `CaptureUnavailableError` if there is none
    apart: int = 0  # by how many thousandths two agreeing calls may differ
    least: int = 0  # the number by which they may always differ
    warms_up: bool = False  # whether short calls count only after Python specialized them

    def agree(self, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        """Whether two calls agree."""
        pairs = zip(one, other, strict=True)
        return all(abs(a - b) <= max(self.least, self.apart * max(a, b) // 1_000) for a, b in pairs)


def _machine_counter() -> Counter:
    from pytest_opprof.capture.instructions import MachineInstructionCounter  # noqa: PLC0415  # few need it

    return MachineInstructionCounter()


PYTHON: Final = Kind(metrics=INSTRUCTION_TOTALS, source=Source.INSTRUCTIONS, counter=InstructionCounter)
# Objects' hashes have addresses, which decide how long a table is searched.
MACHINE: Final = Kind(
    metrics=(NATIVE_INSTRUCTIONS,),
    source=Source.REPLAY,
    counter=_machine_counter,
    apart=2,
    least=500,
    warms_up=True,
)


class CountedCalls(CallAtFixedDepth):
    """Counts the instructions of calls of a test after its schedule; `reason` says why nothing was counted.

    Two calls in a row must agree, or one must have the expected count, of a certified baseline: then nothing
    varies. Garbage is collected before each, not during it, because a collection runs finalizers at an
    unpredictable moment.
    """

    def __init__(self, kind: Kind, *, expected: tuple[int, ...] | None = None) -> None:
        self.kind = kind
        self.reason = ""
        self._expected = expected
        self._counter: Counter | None = None
        self._counts: list[Counted] = []
        self._collects = False

    @property
    def counts(self) -> list[Counted]:
        """One count if the calls agree, else all; none if there is a reason."""
        if self.reason or not self._counts:
            return []
        return self._counts[-1:] if self._has_settled else self._counts[self._warm_calls :]

    @property
    def has_been_asked(self) -> bool:
        """Whether there are counts, or a reason why not."""
        return bool(self.reason or self._counts)

    def calls(self) -> Calls:
        """What to hold open around each further call of a test that is called once per step."""
        try:
            self._counter = self.kind.counter()
        except CaptureUnavailableError as error:
            self.reason = str(error)
        while not (self.reason or self._has_settled or len(self._counts) >= self._warm_calls + _MOST_CALLS):
            yield self

    def __enter__(self) -> None:
        self._collects = gc.isenabled()
        gc.collect()
        gc.disable()
        assert self._counter is not None, "calls() made it"
        try:
            self._counter.start()
        except CaptureUnavailableError as error:
            self.reason = str(error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not self.reason:
            assert self._counter is not None, "calls() made it"
            try:
                counted = self._counter.stop()
            except CaptureUnavailableError as fault:
                self.reason = str(fault)
            else:
                self.reason = counted.doubt
                self._counts.append(counted)
        if self._collects:
            gc.enable()
        if error is not None:
            self.reason = f"counted call {len(self._counts)} raised {type(error).__name__}"
        return is_of_the_call(error)

    @property
    def _has_settled(self) -> bool:
        if not self._counts:
            return False
        last = self._counts[-1].totals
        if self._expected is not None and self.kind.agree(last, self._expected):
            return True
        if len(self._counts) < max(self._warm_calls, 2):
            return False
        return self.kind.agree(last, self._counts[-2].totals)

    @property
    def _warm_calls(self) -> int:
        """How many calls count only if they have the expected count."""
        is_short = self.kind.warms_up and all(sum(one.totals) < _LONG_CALL for one in self._counts)
        return _WARM_CALLS if is_short else 0


def certified_counts(test: TestResult, kind: Kind) -> tuple[int, ...] | None:
    """The counts on which all calls, or a baseline's processes, agreed; None if they did not."""
    found = [test.totals.get(metric.name) for metric in kind.metrics]
    steady = [samples.low for samples in found if samples is not None and samples.is_constant]
    return tuple(steady) if len(steady) == len(found) else None
