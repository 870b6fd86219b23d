"""What a recording is known to lack, in sentences: each table that is made of it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_opprof.units import format_share

if TYPE_CHECKING:
    from collections.abc import Iterator


def losses(*, dropped: int, truncated: bool, names_overflowed: int, sampling: float) -> Iterator[str]:
    """A sentence for each way in which the ops of a recording are not whole.

    Args:
        dropped: events for which there was no room.
        truncated: whether the byte budget or the disk ended the recording early.
        names_overflowed: events that share one name, as the process had too many for theirs.
        sampling: the share of torch's ops that was recorded; 1 for all.
    """
    if dropped:
        yield f"Events not recorded: {dropped} (they are missing from this table)"
    if truncated:
        yield "The recording was cut off when its byte budget was used up"
    if names_overflowed:
        yield f"Too many names: {names_overflowed} events share the name (overflow)"
    if sampling < 1:
        share = format_share(sampling)
        yield f"Sampled: {share} of torch's ops were recorded; their counts and sums are of these"
