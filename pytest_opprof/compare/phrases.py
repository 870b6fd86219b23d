"""Parts of a comparison's sentences: what changed, by how much, compared with what."""

from __future__ import annotations

from pytest_opprof.compare.comparison import Change
from pytest_opprof.metrics import COUNT
from pytest_opprof.results.run import CERTIFICATE, Run, TestResult
from pytest_opprof.results.samples import range_text
from pytest_opprof.units import format_quantity
from pytest_opprof.wording import counted


def than_base(change: Change, base: Run, *, before: TestResult, test: TestResult) -> str:
    """What a sentence compares with, and how sure it is."""
    if not change.is_constant:
        return f"{base.title} ever had (it varies: {values_of(change)})"
    many = min(before.processes, 1_000)
    sure = f"certified in {many} processes" if many >= CERTIFICATE else "not certified"
    return f"{base.title} (same in {test.steps} of {counted(test.steps, 'step')}, {sure})"


def values_of(change: Change) -> str:
    """``1 to 3; now 100``."""
    sides = (side for side in (change.base, change.head) if side is not None)
    return "; now ".join(range_text(side, unit=change.about.unit) for side in sides)


def difference(change: Change) -> str:
    """``4 more ops``, ``2 fewer calls of aten::copy_``, ``4.0 KiB more CPU memory in aten::mm``."""
    many = abs(change.rise)
    word = "more" if change.rise > 0 else "fewer"
    if change.op is not None and change.metric == COUNT.name:
        return f"{counted(many, f'{word} call')} of {name_of(change)}"
    label = change.about.label
    amount = format_quantity(many, unit=change.about.unit)
    of = "" if amount.endswith(label) else f" {_singular(label) if amount == '1' else label}"
    return f"{amount} {word}{of}{f' in {name_of(change)}' if change.op is not None else ''}"


def _singular(label: str) -> str:
    for plural, one in (("copies", "copy"), ("launches", "launch")):
        if plural in label:
            return label.replace(plural, one)
    return label.removesuffix("s")


def name_of(change: Change) -> str:
    """What a sentence or a table calls a change: ``aten::clone``, ``a -> b``, ``ops, total``."""
    if change.rewrite is not None:
        return str(change.rewrite)
    if change.op is None:
        return f"{change.about.label}, total"
    return f"{change.op} (background)" if change.background else change.op
