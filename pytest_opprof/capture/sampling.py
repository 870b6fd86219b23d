"""Sampling: a share of torch's ops, drawn at random, is recorded instead of all of them."""

from __future__ import annotations

from typing import Final

from pytest_opprof.errors import UsageError

EVERY_OP: Final = 1.0
LEAST_SAMPLING: Final = 1e-6  # torch counts the ops to the next one that is drawn in 32 bits

SAMPLING_KEY: Final = "opprof_sampling"  # of a trace's metadata: the share, where it is not all


def parse_sampling(given: object, *, where: str) -> float:
    """The share of ops that is asked for.

    Raises:
        UsageError: It is not a share that can be drawn.
    """
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if is_number and LEAST_SAMPLING <= given <= EVERY_OP:  # type: ignore[operator]  # a number, and no NaN
        return float(given)  # type: ignore[arg-type]
    raise UsageError(
        f"{where}: sampling is {given!r}; it is the share of torch's ops to record, from {LEAST_SAMPLING:g} "
        "(one in a million) to 1 (all of them)"
    )
