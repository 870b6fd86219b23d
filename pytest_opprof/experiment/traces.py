"""Keep traces of tests that regressed in an A/B: those of each side's first process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pytest_opprof.baselines.traces import DEFAULT_BUDGET, SUFFIX, pair_words, project_pairs
from pytest_opprof.compare.timing.comparison import TimeComparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import StoreError
from pytest_opprof.results.names import trace_stem

_MOST_TOLD: Final = 10


def keep_pairs(comparison: TimeComparison, *, base: Path, head: Path, root: Path) -> Iterator[str]:
    """Keep base's and head's traces of each test that regressed, in its time or by an exact gate.

    They come from the folders `base` and `head`; those that are kept are moved below `root`. Yields sentences
    on where they are, or why there are none.
    """
    regressed = [test.node_id for test in comparison.tests if test.verdict is Verdict.REGRESSED]
    pairs = project_pairs(root, budget=DEFAULT_BUDGET)
    told = []
    for node_id in regressed:
        ours = _last_trace(head, node_id)
        if ours is None:
            continue
        try:
            refused = pairs.put(node_id, base=_last_trace(base, node_id), head=ours)
        except StoreError as error:
            yield f"no traces of regressed tests were stored: {error}"
            return
        words = pair_words(node_id, pairs, missing="the base left none", tests=regressed)
        told.append(refused or f"traces: {words}")
    yield from told[:_MOST_TOLD]
    if len(told) > _MOST_TOLD:
        yield f"... and traces of {len(told) - _MOST_TOLD} more tests: opprof view"


def _last_trace(folder: Path, node_id: str) -> Path | None:
    """A test's trace, the last one if it has several cycles."""
    stem = trace_stem(node_id)
    cycles = sorted(folder.glob(f"{stem}.cycle*{SUFFIX}"), key=lambda path: (len(path.name), path.name))
    found = [*folder.glob(f"{stem}{SUFFIX}"), *cycles]
    return found[-1] if found else None
