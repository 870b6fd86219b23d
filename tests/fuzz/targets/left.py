"""Leftovers of ended processes: session files, and states of experiments and bisections."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path
from typing import Final

from fuzz.target import Target, put, refusals_end_here
from fuzz.targets.traces import use_events

from pytest_opprof.events.event_list import EventList
from pytest_opprof.experiment.bisect import BisectState, Question
from pytest_opprof.experiment.experiment_store import named, unfinished
from pytest_opprof.experiment.interleave import turns
from pytest_opprof.recovery.deaths import death_of, told, write_trace
from pytest_opprof.recovery.sessions import is_leftover, left_sessions, remove

# A session is three files, mostly holes. An input is what stands in them, piece by piece: which file, how
# many bytes, where; then the bytes. native/tests/fuzz_session.c reads the same.
_PIECE: Final = struct.Struct("<BxHI")
_HEADER_BYTES: Final = 4_096
_CHUNK_BYTES: Final = 256 * 1_024
SIZES: Final = (_HEADER_BYTES + _CHUNK_BYTES, 65_536, 65_536)
# Offsets in the header of the two other files' paths.
PATHS_AT: Final = 120
_PATH_BYTES: Final = 1_024
QUESTION: Final = Question(
    pattern="ops.count", test="t.py::test_x", good="a" * 40, bad="b" * 40, setup="", python=""
)


def pieces(files: tuple[bytes, bytes, bytes]) -> bytes:
    """An input for three files; zeros are left out."""
    found = []
    for number, data in enumerate(files):
        at = 0
        while at < len(data):
            piece = data[at : at + 64]
            if piece.strip(b"\0") or number:
                piece = data[at : at + 4_096] if number else piece
                found.append(_PIECE.pack(number, len(piece), at) + piece)
            at += len(piece)
    return b"".join(found)


def _files(data: bytes) -> list[bytearray]:
    files, ends, at = [bytearray(size) for size in SIZES], [SIZES[0], 0, 0], 0
    while at + _PIECE.size <= len(data):
        number, length, start = _PIECE.unpack_from(data, at)
        at += _PIECE.size
        file, start = files[number % 3], start % SIZES[number % 3]
        piece = data[at : at + length][: len(file) - start]
        file[start : start + len(piece)] = piece
        ends[number % 3] = max(ends[number % 3], start + len(piece))
        at += length
    return [file[:end] for file, end in zip(files, ends, strict=True)]


def _read_session(data: bytes, folder: Path) -> None:
    left = folder / "left"
    shutil.rmtree(left, ignore_errors=True)
    left.mkdir()
    stem = f"opprof-{os.getuid()}-4711-"
    paths = [left / f"{stem}ab", left / f"{stem}ab.names", left / f"{stem}cd.spill"]
    contents = _files(data)
    for at, path in enumerate(paths[1:]):
        place = slice(PATHS_AT + at * _PATH_BYTES, PATHS_AT + (at + 1) * _PATH_BYTES)
        contents[0][place] = os.fsencode(path).ljust(_PATH_BYTES, b"\0")
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    for file in left_sessions([left]):
        is_leftover(file, now_ns=0)
        death = death_of(file)
        assert death.test
        trace = write_trace(death, left / "traces")
        for line in told(death, trace=trace):
            assert line
        if death.recording is not None:
            use_events(EventList([death.recording]))
        remove(file)


def _read_plan(data: bytes, folder: Path) -> None:
    """A plan, and after a separate line the list of deaths."""
    experiment = folder / ".opprof" / "ab" / "20260102-030405-1a2b"
    shutil.rmtree(experiment, ignore_errors=True)
    experiment.mkdir(parents=True)
    plan, _, deaths = data.partition(b"\n---\n")
    put(experiment, "plan.json", plan)
    if deaths:
        put(experiment, "deaths.json", deaths)
    for kept in unfinished(folder):
        assert kept.plan.differences(kept.plan) == []
        assert kept.plan.steps >= 1
        assert len(turns(min(kept.plan.processes, 100), seed=kept.plan.seed)) == 2 * min(
            kept.plan.processes, 100
        )
        with refusals_end_here():
            assert all(isinstance(death.how, str) for death in kept.deaths())
    named(folder, experiment.name)


def _read_bisection(data: bytes, folder: Path) -> None:
    state = folder / ".opprof" / ".state"
    state.mkdir(parents=True, exist_ok=True)
    put(state, "bisect.json", data)
    bisection = BisectState(folder / ".opprof", QUESTION)
    bisection.resume()
    for found in list(bisection.measured.values()):
        bisection.keep("c" * 40, found)


TARGETS: Final = (
    Target(name="session", read=_read_session),
    Target(name="plan", read=_read_plan, words=("base", "head", "first", "confirm")),
    Target(name="bisection", read=_read_bisection, words=("question", "measured", "value")),
)
