"""Device work as two profilers recorded it, in separate processes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

# The categories of a Chrome trace.
WORK: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
CALLS: Final = frozenset({"cuda_runtime", "cuda_driver"})
SHARE: Final = 0.05
MARGIN_NS: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one window recorded: how often each kernel, copy and fill ran, and their total time.

    Attributes:
        unlaunched: Number of these without a recorded launch call.
    """

    counts: dict[str, int]
    device_ns: int
    unlaunched: int = 0

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def seen_in(trace: Path) -> Seen:
    """Read a trace of either profiler."""
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    calls = {event["args"]["correlation"] for event in events if event.get("cat") in CALLS}
    work = [event for event in events if event.get("ph") == "X" and event.get("cat") in WORK]
    return Seen(
        counts=dict(Counter(event["name"] for event in work)),
        device_ns=sum(round(event["dur"] * 1000) for event in work),
        unlaunched=sum(event["args"]["correlation"] not in calls for event in work),
    )


def as_json(windows: Sequence[Seen]) -> list[dict[str, Any]]:
    return [asdict(window) for window in windows]


def from_json(windows: Sequence[dict[str, Any]]) -> list[Seen]:
    return [Seen(**window) for window in windows]


def least_ns(windows: Sequence[Seen]) -> int:
    """The time of the least disturbed window: each ran the same work."""
    return min(window.device_ns for window in windows)


def differences(ours: Sequence[Seen], theirs: Sequence[Seen]) -> list[str]:
    """A sentence for each difference; empty if there is none."""
    if not ours or not theirs or not theirs[0].counts:
        return ["torch.profiler saw nothing on the device: nothing can be compared"]
    expected = theirs[0].counts
    found = []
    for who, windows in (("torch.profiler", theirs), ("ours", ours)):
        for number, window in enumerate(windows):
            found += [
                f"{name}: {window.counts.get(name, 0)} in window {number} of {who}, "
                f"{expected.get(name, 0)} in torch.profiler's first"
                for name in sorted(expected.keys() | window.counts.keys())
                if window.counts.get(name, 0) != expected.get(name, 0)
            ]
    lost = [max(window.unlaunched for window in windows) for windows in (ours, theirs)]
    if lost[0] > lost[1]:
        found.append(
            f"{lost[0]} kernels, copies or fills have no launch on record, {lost[1]} of torch.profiler's"
        )
    mine, their = least_ns(ours), least_ns(theirs)
    if abs(mine - their) > SHARE * their + MARGIN_NS:
        found.append(
            f"device time: {mine} ns against {their} ns, more than {SHARE:.0%} + {MARGIN_NS} ns apart"
        )
    return found
