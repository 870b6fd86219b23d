"""Sampling: record a random share of torch's ops instead of all of them."""

from __future__ import annotations

from typing import Final

from pytest_opprof.errors import UsageError

EVERY_OP: Final = 1.0
LEAST_SAMPLING: Final = 1e-6  # torch counts the ops until the next draw in 32 bits

SAMPLING_KEY: Final = "opprof_sampling"  # in a trace's metadata: the share, unless it is 1


def parse_sampling(given: object, *, where: str) -> float:
    """The requested share of ops.

    Raises:
        UsageError: It is not a number from `LEAST_SAMPLING` to 1.
    """
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if is_number and LEAST_SAMPLING <= given <= EVERY_OP:  # type: ignore[operator]  # a number, and no NaN
        return float(given)  # type: ignore[arg-type]
    raise UsageError(
        f"{where}: sampling is {given!r}; it is the share of torch's ops to record, from {LEAST_SAMPLING:g} "
        "(one in a million) to 1 (all of them)"
    )
