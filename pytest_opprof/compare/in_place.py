"""Ops that allocate where their in-place forms ran before, such as `aten::relu` in place of `aten::relu_`."""

from __future__ import annotations

from functools import cached_property

from pytest_opprof.kinds import OpKind
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples

_NO_CALLS = Samples.constant(0, steps=1)


class InPlaceOps:
    """How often the ops of a test run in place, on both sides."""

    def __init__(self, base: TestResult, head: TestResult) -> None:
        self._sides = base, head

    def became(self, op: str) -> bool:
        """Whether an op has as many more calls as its in-place form has fewer, and it allocates in each.

        Not if other ops run in place instead: then as many tensors are allocated as before.
        """
        rise = self._rise(op)
        return rise == -self._rise(f"{op}_") > 0 and rise <= -sum(map(self._rise, self._in_place))

    def _rise(self, op: str) -> int:
        """How many more calls an op has in each step; 0 if they vary."""
        counts = [side.get(op, _NO_CALLS) for side in self._counts]
        return counts[1].low - counts[0].low if all(count.is_constant for count in counts) else 0

    @cached_property
    def _counts(self) -> tuple[dict[str, Samples], dict[str, Samples]]:
        """The calls of each side's ops."""
        base, head = (
            {row.name: row.count for row in side.ops if row.kind is OpKind.OP and not row.background}
            for side in self._sides
        )
        return base, head

    @cached_property
    def _in_place(self) -> frozenset[str]:
        """The ops that run in place, and that a side also runs in the form that allocates."""
        known = self._counts[0].keys() | self._counts[1].keys()
        return frozenset(op for op in known if op.endswith("_") and op[:-1] in known)
