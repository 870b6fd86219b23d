"""One run of a program, recorded by us and by Kineto, as both traces."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.programs.windows import RANGES_AND_OPS

from pytest_opprof.capture.collector import Collector

OURS = "ours.json"
THEIRS = "theirs.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """One run as two recorders wrote it."""

    ours: Any
    theirs: Any
    our_bytes: int
    their_bytes: int


def written_by_both(
    torch: Any, program: Callable[[Any], object], folder: Path, *, ours_first: bool = True, **options: Any
) -> Traces:
    """Record one run of a program with our collector and with torch.profiler, and write both traces."""
    collector = Collector.instance()
    shapes = bool(options.get("record_shapes"))
    collector.open(sources=RANGES_AND_OPS)
    profiler = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        acc_events=True,  # torch 2.12 warns in each process about missing features
        **options,
    )
    if ours_first:
        collector.start(record_shapes=shapes)
        profiler.start()
        program(torch)
        profiler.stop()
        recording = collector.stop()
    else:
        profiler.start()
        collector.start(record_shapes=shapes)
        program(torch)
        recording = collector.stop()
        profiler.stop()
    recording.write_chrome_trace(folder / OURS)
    profiler.export_chrome_trace(str(folder / THEIRS))
    return traces_in(folder)


def traces_in(folder: Path) -> Traces:
    """The traces of `written_by_both`, in this process or in another."""
    ours, theirs = folder / OURS, folder / THEIRS
    return Traces(
        ours=json.loads(ours.read_bytes()),
        theirs=json.loads(theirs.read_bytes()),
        our_bytes=ours.stat().st_size,
        their_bytes=theirs.stat().st_size,
    )
