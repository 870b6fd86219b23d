"""One number per active step, stored compactly.

In a document, equal samples are one integer, others a list; if a list is not worth its space only its sum,
minimum and maximum are kept.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pytest_opprof.units import Unit, format_quantity

SamplesDocument: TypeAlias = int | Sequence[int] | Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """The values of one metric over the active steps of a test."""

    steps: int
    total: int  # the sum over the steps
    low: int  # the smallest value of a step
    high: int  # the largest value of a step
    # The value of each step, if they differ and were kept. Equal ones take no space, so a hostile document
    # cannot take much memory with few characters.
    values: tuple[int, ...] | None = None

    @classmethod
    def of(cls, values: Iterable[int]) -> Samples:
        """Samples of these values, one per step; without any, zero."""
        kept = tuple(values)
        low, high = min(kept, default=0), max(kept, default=0)
        return cls(steps=len(kept), total=sum(kept), low=low, high=high, values=None if low == high else kept)

    @classmethod
    def constant(cls, value: int, *, steps: int) -> Samples:
        """The same value in each of ``steps`` steps."""
        return cls(steps=steps, total=value * steps, low=value, high=value)

    @classmethod
    def ranging(cls, values: Sequence[int], *, steps: int) -> Samples:
        """Measurements outside the steps: the last one stands for each step, within their range."""
        return cls(steps=steps, total=values[-1] * steps, low=min(values), high=max(values))

    def zeros(self) -> Samples:
        """Zeros for as many steps."""
        return _constant(0, self.steps)

    @property
    def is_constant(self) -> bool:
        """Whether every step has the same value."""
        return self.low == self.high

    @property
    def is_exact(self) -> bool:
        """Whether the value of each step is known."""
        return self.is_constant or self.values is not None

    @property
    def mean(self) -> float:
        """The mean over the steps."""
        return self.total / self.steps if self.steps else 0.0

    def plus(self, other: Samples) -> Samples:
        """Step by step, the sum of two metrics of one test; a range if single steps are unknown."""
        if self.values is not None and other.values is not None:
            return Samples.of(map(sum, zip(self.values, other.values, strict=True)))
        total, low, high = self.total + other.total, self.low + other.low, self.high + other.high
        for varying, fixed in ((self, other), (other, self)):
            if varying.values is not None and fixed.is_constant:
                return Samples.of(value + fixed.low for value in varying.values)
        return Samples(steps=self.steps, total=total, low=low, high=high)

    def minus(self, part: Samples) -> Samples:
        """Step by step, the rest without a part; a range if single steps are unknown."""
        if part == self:
            return self.zeros()
        negated = None if part.values is None else tuple(-value for value in part.values)
        left = self.plus(replace(part, total=-part.total, low=-part.high, high=-part.low, values=negated))
        if left.low >= 0:
            return left
        return Samples(steps=self.steps, total=max(left.total, 0), low=0, high=max(left.high, 0))

    def summarized(self) -> Samples:
        """The same without the single values."""
        return Samples(steps=self.steps, total=self.total, low=self.low, high=self.high)

    def widened(self, other: Samples) -> Samples:
        """These samples with the range of ``other`` included, for measurements that disagree."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        if (low, high) == (self.low, self.high):
            return self
        return Samples(steps=self.steps, total=self.total, low=low, high=high)

    def to_document(self) -> SamplesDocument:
        """An integer, a list, or ``{"sum", "min", "max"}``."""
        if self.is_constant:
            return self.low
        if self.values is not None:
            return list(self.values)
        return {"sum": self.total, "min": self.low, "max": self.high}

    @classmethod
    def from_document(cls, document: SamplesDocument, *, steps: int) -> Samples:
        """Read what `to_document` wrote; a ValueError if it contradicts itself or the number of steps."""
        if isinstance(document, int):
            return _constant(document, steps)
        if isinstance(document, Mapping):
            total, low, high = document["sum"], document["min"], document["max"]
            if not low * steps <= total <= high * steps:
                msg = f"a sum of {total} is not made of {steps} values from {low} to {high}"
                raise ValueError(msg)
            return cls(steps=steps, total=total, low=low, high=high)
        samples = cls.of(document)
        if samples.steps != steps:
            msg = f"{samples.steps} values for {steps} steps"
            raise ValueError(msg)
        return samples


def range_text(samples: Samples, *, unit: Unit) -> str:
    """Samples for a reader: ``12``, or ``12 to 14`` if the difference is visible."""
    low, high = format_quantity(samples.low, unit=unit), format_quantity(samples.high, unit=unit)
    return low if low == high else f"{low} to {high}"


@functools.lru_cache(maxsize=4096)
def _constant(value: int, steps: int) -> Samples:
    """Made once: a run has the same few counts in tens of thousands of places, mostly zeros."""
    return Samples.constant(value, steps=steps)
