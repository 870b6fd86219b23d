"""What happens between two steps: the table of ``torch.profiler.profile``, with two faults mended.

If RECORD is followed by NONE or WARMUP, torch ends the recording without delivering it; with WARMUP it then
starts the next one unprepared, which crashes the interpreter. Here every recording that ends is delivered,
and every recording that starts was prepared. The warning of an odd schedule stays.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pytest_opprof.profiler.schedule import ProfilerAction


class Move(enum.Enum):
    """One thing to do between two steps."""

    WARN = "warn that the schedule is odd"
    PREPARE = "make the collector ready"
    START = "open the window"
    STOP = "close the window"
    DELIVER = "hand the finished cycle over"


_NONE, _WARMUP, _RECORD, _SAVE = ProfilerAction
_SAVE_CYCLE = (Move.STOP, Move.DELIVER)
_OPEN_CYCLE = (Move.PREPARE, Move.START)

# From the action of the step that ends to that of the step that begins; None is the end of the profiler.
# A profiler that stops while it warms up opens and closes an empty window: it did run, so it has a result.
# The warning comes last, because under `-W error` it raises.
TRANSITIONS: Final[Mapping[tuple[ProfilerAction, ProfilerAction | None], tuple[Move, ...]]] = (
    MappingProxyType(
        {
            (_NONE, _NONE): (),
            (_NONE, _WARMUP): (Move.PREPARE,),
            (_NONE, _RECORD): _OPEN_CYCLE,
            (_NONE, _SAVE): _OPEN_CYCLE,
            (_NONE, None): (),
            (_WARMUP, _NONE): (Move.START, Move.STOP, Move.WARN),
            (_WARMUP, _WARMUP): (),
            (_WARMUP, _RECORD): (Move.START,),
            (_WARMUP, _SAVE): (Move.START,),
            (_WARMUP, None): (Move.START, Move.STOP),
            (_RECORD, _NONE): (*_SAVE_CYCLE, Move.WARN),
            (_RECORD, _WARMUP): (*_SAVE_CYCLE, Move.PREPARE, Move.WARN),
            (_RECORD, _RECORD): (),
            (_RECORD, _SAVE): (),
            (_RECORD, None): _SAVE_CYCLE,
            (_SAVE, _NONE): _SAVE_CYCLE,
            (_SAVE, _WARMUP): (*_SAVE_CYCLE, Move.PREPARE),
            (_SAVE, _RECORD): (*_SAVE_CYCLE, *_OPEN_CYCLE),
            (_SAVE, _SAVE): (*_SAVE_CYCLE, *_OPEN_CYCLE),
            (_SAVE, None): _SAVE_CYCLE,
        }
    )
)
