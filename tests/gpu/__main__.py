"""``python -m gpu``, run by `make test-gpu`: compares on this GPU and prints docs/gpu-validation.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gpu import launch_cost, recorded
from gpu.comparison import Seen, differences, least_ns
from gpu.machine import lacks, this_machine
from gpu.page import Line, Verdict, page
from gpu.workloads import WORKLOADS, Workload

PAGE: Final = Path(__file__).parents[2] / "docs" / "gpu-validation.md"
FAILED: Final = 1
NOTHING_RAN: Final = 3


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m gpu", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the page in docs/")
    args = parser.parse_args(arguments)
    reason = lacks(())
    if reason is not None:
        print(f"nothing was tested on a GPU: {reason}", file=sys.stderr)
        return NOTHING_RAN
    lines = [compared(name, workload) for name, workload in WORKLOADS.items()]
    lines.append(launches(launch_cost.both))
    text = page(this_machine(), lines, day=datetime.now(UTC).date())
    print(text)
    if args.write:
        PAGE.write_text(text, encoding="utf-8")
    return exit_code(lines)


def exit_code(lines: list[Line]) -> int:
    """A line that was not run is reported; a run without any line is a failure."""
    verdicts = {line.verdict for line in lines}
    if Verdict.FAILS in verdicts:
        return FAILED
    return 0 if Verdict.HOLDS in verdicts else NOTHING_RAN


def compared(
    name: str,
    workload: Workload,
    *,
    lack: Callable[[tuple[str, ...]], str | None] = lacks,
    both: Callable[[str], tuple[list[Seen], list[Seen]]] = recorded.both,
) -> Line:
    """The line of one workload."""
    reason = lack(workload.needs)
    if reason is not None:
        return Line(what=workload.title, verdict=Verdict.NOT_RUN, detail=reason)
    try:
        ours, theirs = both(name)
    except RuntimeError as error:
        return Line(what=workload.title, verdict=Verdict.FAILS, detail=str(error))
    found = differences(ours, theirs)
    return Line(
        what=workload.title,
        ours=_sums(ours),
        torch=_sums(theirs),
        verdict=Verdict.FAILS if found else Verdict.HOLDS,
        detail="; ".join(found),
    )


def launches(both: Callable[[], tuple[float, float]]) -> Line:
    """The line of the cost of a launch."""
    what = f"recording a launch, at most {launch_cost.MOST} of torch.profiler's"
    try:
        ours, theirs = both()
    except RuntimeError as error:
        return Line(what=what, verdict=Verdict.FAILS, detail=str(error))
    holds = theirs > 0 and ours <= launch_cost.MOST * theirs
    share = (
        f"{ours / theirs:.2f} of it" if theirs > 0 else "torch.profiler added nothing that could be measured"
    )
    return Line(
        what=what,
        ours=f"+ {ours:.0f} ns",
        torch=f"+ {theirs:.0f} ns",
        verdict=Verdict.HOLDS if holds else Verdict.FAILS,
        detail="" if holds else share,
    )


def _sums(windows: list[Seen]) -> str:
    return (
        f"{windows[0].total} of {len(windows[0].counts)} names, {least_ns(windows) / 1000:.1f} µs"
        if windows
        else ""
    )


if __name__ == "__main__":
    sys.exit(main())
