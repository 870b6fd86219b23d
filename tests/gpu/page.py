"""The text of docs/gpu-validation.md: what ran on which hardware, or that nothing ran."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from gpu.machine import Machine


class Verdict(enum.Enum):
    """How a line ended."""

    HOLDS = "yes"
    FAILS = "NO"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the page.

    Attributes:
        detail: Why it does not hold, or was not run; "" where it holds.
    """

    what: str
    verdict: Verdict
    ours: str = ""
    torch: str = ""
    detail: str = ""


TITLE: Final = "# On real GPUs\n"
INTRODUCTION: Final = """\
`make test-gpu` runs the same programs under `profile` and under torch.profiler, each in a process of its own: a training
step of PyTorch, a CUDA graph, several streams, a Triton kernel and CuPy. The kernels, copies and fills must be the same, by
name and number, each with its launch, and their time within 5 % + 2 µs. What recording adds to a launch must be at most
0.8 of what torch.profiler adds. The command prints this page (`make test-gpu WRITE=1` keeps it), and exits with 1 if a line does not
hold, or with 3 if there is no GPU or nothing could be compared. Then it runs the tests in `tests/gpu`: torch.profiler
starts while we record, a recording ends in a stream's capture, CuPy's allocators take memory, the module of a named
kernel is gone, and marked tests are compared unchanged.
"""
NEVER_RUN: Final = """\
**It has not run on hardware yet.** The CUDA code was built and tested with a libcupti and a libcuda of our own, which
write the layouts of NVIDIA's headers; NVIDIA's own library reads their records. So the lines above and below are unproved.
"""
UNPROVED: Final = """\
Not shown so far on any hardware:

- what a launch costs by the kinds of records that are enabled, and what it still costs once they are disabled again
- whether a driver's call inside a runtime's has its correlation id, in each release from 12.0 on (both are handled)
- that calls have the system's numbers of their threads, and what these cost
- that CUPTI changes its clock between two recordings
- the error of a driver that lets only administrators profile, in containers and on MIG slices
- CUPTI's records of memory: their calls' ids, and what a pool says that it freed
- several devices in one process
"""
_HEADERS: Final = ("what", "ours", "torch.profiler", "holds")


def page(machine: Machine | None, lines: Sequence[Line], *, day: date | None = None) -> str:
    """The page of a run on this machine, or the page without a run."""
    parts = [TITLE, INTRODUCTION]
    if machine is None:
        parts.append(NEVER_RUN)
    else:
        parts += [_where(machine, day), _table(lines)]
    return "\n".join([*parts, UNPROVED])


def _where(machine: Machine, day: date | None) -> str:
    facts = {
        "date": day.isoformat() if day else "",
        "GPU": machine.gpu,
        "driver": machine.driver,
        "CUDA of the driver": machine.cuda,
        "CUPTI": machine.cupti,
        **machine.versions,
    }
    return "".join(f"- {name}: {_cell(value) or 'not known'}\n" for name, value in facts.items())


def _table(lines: Sequence[Line]) -> str:
    rows = [_HEADERS, ("---",) * len(_HEADERS)]
    for line in lines:
        verdict = f"{line.verdict.value}: {line.detail}" if line.detail else line.verdict.value
        rows.append((line.what, line.ours, line.torch, verdict))
    return "".join(f"| {' | '.join(map(_cell, row))} |\n" for row in rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
