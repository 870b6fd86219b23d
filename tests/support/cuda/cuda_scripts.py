"""Random scripts for the fake CUDA from hypothesis, and the expected content of a recording.

The expectation is computed from the script only: the number of kernels, launches, copies, bytes and waits of
each range in each step, and the duration of its work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from hypothesis import strategies as st

NO_STEP: Final = -1
DIRECTIONS: Final = {1: "htod", 2: "dtoh", 8: "dtod", 10: "ptop", 9: "htoh"}  # by CUpti_ActivityMemcpyKind
WHOLE: Final = ""  # in place of a range's name
FIRST_BLOCK: Final = 0x7F00_0000_0000
LARGEST: Final = 2**30  # bytes of a block
WAITS: Final = ("sync_device", "sync_stream", "sync_event")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A line that starts work on a device."""

    kind: str
    device: int
    stream: int
    ns: int
    nbytes: int
    nodes: int
    copy_kind: int
    api: str
    fate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A line that makes the host wait."""

    kind: str
    device: int
    stream: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A line that begins or ends a range, or makes a failing CUDA call."""

    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A line that allocates memory of a device, or frees the thread's last allocation."""

    gives_back: bool
    nbytes: int
    device: int
    api: str


Line = Work | Wait | Mark | Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Concurrent work of threads, in a new step or the last one; the first thread continues after it."""

    steps: bool
    threads: tuple[tuple[Line, ...], ...]


@dataclass(slots=True)
class Expected:
    """The content of a script.

    Attributes:
        sums: Per range and step: the collector's `MEASURES`, and "device_ns".
        adrift: The same for work without a call: part of the whole, in an unknown step.
        records: Records of calls, work and waits.
        nested: Calls among these that are inside other calls: both are one row.
        lost: Launches without a kernel.
        unlaunched: Records of work without a call.
        untimed: Records of work without times.
        held: By thread: the blocks that it allocated and did not free, in order.
        blocks: Number of allocated blocks.
        ranges: Number of ranges.
        steps: Number of steps.
    """

    sums: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    adrift: Counter[str] = field(default_factory=Counter)
    records: int = 0
    nested: int = 0
    lost: int = 0
    unlaunched: int = 0
    untimed: int = 0
    held: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    blocks: int = 0
    ranges: int = 0
    steps: int = 0

    def add(self, around: Iterable[str], step: int, amounts: dict[str, int]) -> None:
        """Add a line's amounts to these ranges and to the whole."""
        for name in {WHOLE, *around}:
            for measure, amount in amounts.items():
                self.sums[name, step, measure] += amount


def write(stretches: Iterable[Stretch], *, shuffle: int = 0, late: int = 0) -> tuple[str, Expected]:
    """The text of a script, and its expected content."""
    lines = [f"shuffle {shuffle}", f"late {late}"]
    expected = Expected()
    step = NO_STEP
    for stretch in stretches:
        if stretch.steps:
            lines += ["thread 0", "step", "join"]
            step += 1
        for thread, body in enumerate(stretch.threads):
            lines.append(f"thread {thread}")
            lines += _write_body(body, step, expected, thread=thread)
        lines.append("join")
    expected.steps = step + 1
    return "\n".join(lines), expected


def _write_body(body: Iterable[Line], step: int, expected: Expected, *, thread: int) -> Iterable[str]:
    around: list[str] = []
    for line in body:
        match line:
            case Mark(kind="begin"):
                around.append(f"r{expected.ranges}")
                expected.ranges += 1
                yield f"begin {around[-1]}"
            case Mark(kind="end"):
                if around:
                    around.pop()
                    yield "end"
            case Mark():
                expected.records += 1
                yield "launch result=1" if line.kind == "failed" else "call cbid=135"
            case Wait():
                expected.records += 2
                expected.add(around, step, {"syncs": 1})
                yield f"{line.kind} device={line.device} stream={line.stream}"
            case Memory():
                yield from _write_memory(line, around, step, expected, thread=thread)
            case Work():
                _expect(line, around, step, expected)
                yield _text(line)
    yield from ["end"] * len(around)


def _write_memory(
    line: Memory, around: list[str], step: int, expected: Expected, *, thread: int
) -> Iterable[str]:
    held = expected.held.setdefault(thread, [])
    if line.gives_back and not held:
        return
    expected.records += 2 + line.api.startswith("nested")
    expected.nested += line.api.startswith("nested")
    if line.gives_back:
        block, device, nbytes = held.pop()
        expected.add(around, step, {"memory": -nbytes})
    else:
        block, device, nbytes = expected.blocks, line.device, line.nbytes
        held.append((block, device, nbytes))
        expected.blocks += 1
        expected.add(around, step, {"memory": nbytes})
    what = "free" if line.gives_back else "malloc"
    # a block is identified by its address, on any device
    yield f"{what} address={FIRST_BLOCK + block * LARGEST} device={device} bytes={nbytes} api={line.api}"


def _text(work: Work) -> str:
    kind = {"kernel": "launch"}.get(work.kind, work.kind)
    flags = f" flags={work.fate}" if work.fate else ""
    return (
        f"{kind} name=k device={work.device} stream={work.stream} ns={work.ns} bytes={work.nbytes}"
        f" nodes={work.nodes} graph={work.nodes} copy_kind={work.copy_kind} api={work.api}{flags}"
    )


def _expect(work: Work, around: list[str], step: int, expected: Expected) -> None:
    has_call = work.api != "none"
    records = 0 if work.fate == "lost" else work.nodes if work.kind == "graph" else 1
    nested = work.api.startswith("nested")
    expected.nested += nested
    expected.records += records + nested + has_call
    is_timed = work.fate in {"", "late"}
    expected.untimed += 0 if is_timed else records
    amounts = {"device_ns": work.ns * records if is_timed else 0, **_amounts(work, records)}
    if has_call:
        expected.add(around, step, amounts)
        expected.lost += not records
    else:
        expected.unlaunched += records
        expected.adrift.update(amounts | {"launches": 0})


def _amounts(work: Work, records: int) -> dict[str, int]:
    if work.kind in {"kernel", "graph"}:
        return {"kernels": records, "launches": 1}
    if work.kind == "memset":
        return {"memsets": records}
    direction = "ptop" if work.kind == "peer" else DIRECTIONS[work.copy_kind]
    copies = {"copies": 1, f"copies_{direction}": 1}
    return copies | {"copied_bytes": work.nbytes, f"copied_bytes_{direction}": work.nbytes}


# ---- strategies ----

_places = {"device": st.integers(0, 1), "stream": st.integers(7, 9)}
_kinds = st.sampled_from(["kernel", "kernel", "kernel", "graph", "memcpy", "peer", "memset"])
_works = st.builds(
    Work,
    kind=_kinds,
    **_places,
    ns=st.integers(100, 50_000),
    nbytes=st.integers(0, 2**40),
    nodes=st.integers(1, 40),
    copy_kind=st.sampled_from([*DIRECTIONS]),
    api=st.sampled_from(["runtime", "runtime", "driver", "nested", "nested_own", "none"]),
    fate=st.sampled_from(["", "", "", "late", "endless", "untimed", "backward"]),
)
_lost = st.builds(
    Work,
    kind=st.sampled_from(["kernel", "graph"]),
    **_places,
    ns=st.just(100),
    nbytes=st.just(0),
    nodes=st.integers(1, 3),
    copy_kind=st.just(1),
    api=st.just("runtime"),
    fate=st.just("lost"),
)
_waits = st.builds(Wait, kind=st.sampled_from(WAITS), **_places)
_marks = st.builds(Mark, kind=st.sampled_from(["begin", "begin", "end", "failed", "record"]))
_memory = st.builds(
    Memory,
    gives_back=st.booleans(),
    nbytes=st.integers(1, LARGEST),
    device=st.integers(0, 1),
    api=st.sampled_from(["runtime", "driver", "nested", "nested_own"]),
)
_bodies = st.lists(st.one_of(_works, _works, _marks, _marks, _memory, _waits, _lost), max_size=12).map(tuple)
_stretches = st.builds(
    Stretch, steps=st.booleans(), threads=st.lists(_bodies, min_size=1, max_size=3).map(tuple)
)
scripts = st.builds(
    write, st.lists(_stretches, min_size=1, max_size=4), shuffle=st.integers(0, 1000), late=st.integers(0, 3)
)
