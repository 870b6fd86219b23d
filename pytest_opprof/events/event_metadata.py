"""Details of a kernel, copy or collective beyond its times: torch's ``EventMetadata``."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple


class EventMetadata(NamedTuple):
    """Details of a kernel, copy or collective; None for each that is unknown.

    Attributes:
        shared_memory: Bytes per block.
        grid: Blocks in each direction.
        block: Threads in each direction.
        blocks_per_sm: Blocks per multiprocessor.
        occupancy: How the occupancy was calculated.
        est_occupancy_pct: Estimated achieved occupancy, percent.
        bytes: Size of a copy or a fill.
        bandwidth_gb_s: Gigabytes per second.
        dtype: Type of the elements.
        in_msg_nelems: Elements of the input.
        out_msg_nelems: Elements of the output.
        in_split_size: How the input is split.
        out_split_size: How the output is split.
        global_rank_start: First rank of the group.
        global_rank_stride: Step from one rank to the next.
        group_size: Ranks in the group.
        group_ranks: The group's ranks as text.
        src_rank: Where the data comes from.
        dst_rank: Where it goes.
        is_async: The call does not wait.
    """

    registers_per_thread: int | None = None
    shared_memory: int | None = None
    grid: list[int] | None = None
    block: list[int] | None = None
    priority: int | None = None
    blocks_per_sm: float | None = None
    warps_per_sm: float | None = None
    occupancy: dict[str, Any] | None = None
    est_occupancy_pct: float | None = None
    queued: int | None = None
    graph_id: int | None = None
    graph_node_id: int | None = None
    stream: int | None = None
    context: int | None = None
    channel: int | None = None
    channel_type: int | None = None
    bytes: int | None = None
    bandwidth_gb_s: float | None = None
    collective_name: str | None = None
    dtype: str | None = None
    in_msg_nelems: int | None = None
    out_msg_nelems: int | None = None
    in_split_size: str | None = None
    out_split_size: str | None = None
    global_rank_start: int | None = None
    global_rank_stride: int | None = None
    group_size: int | None = None
    process_group_name: str | None = None
    process_group_desc: str | None = None
    group_ranks: str | None = None
    rank: int | None = None
    src_rank: int | None = None
    dst_rank: int | None = None
    seq: int | None = None
    is_async: bool | None = None


def _unquoted(text: str) -> str:
    return text.strip('"')


# By Kineto's key: the field, and the parser of its text.
_FIELDS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "registers per thread": ("registers_per_thread", int),
    "shared memory": ("shared_memory", int),
    "grid": ("grid", json.loads),
    "block": ("block", json.loads),
    "priority": ("priority", int),
    "blocks per SM": ("blocks_per_sm", float),
    "warps per SM": ("warps_per_sm", float),
    "est. achieved occupancy %": ("est_occupancy_pct", float),
    "occupancy": ("occupancy", json.loads),
    "queued": ("queued", int),
    "graph id": ("graph_id", int),
    "graph node id": ("graph_node_id", int),
    "stream": ("stream", int),
    "context": ("context", int),
    "channel": ("channel", int),
    "channel_type": ("channel_type", int),
    "bytes": ("bytes", int),
    "memory bandwidth (GB/s)": ("bandwidth_gb_s", float),
    "Collective name": ("collective_name", _unquoted),
    "dtype": ("dtype", _unquoted),
    "In msg nelems": ("in_msg_nelems", int),
    "Out msg nelems": ("out_msg_nelems", int),
    "In split size": ("in_split_size", _unquoted),
    "Out split size": ("out_split_size", _unquoted),
    "Global rank start": ("global_rank_start", int),
    "Global rank stride": ("global_rank_stride", int),
    "Group size": ("group_size", int),
    "Process Group Name": ("process_group_name", _unquoted),
    "Process Group Description": ("process_group_desc", _unquoted),
    "Process Group Ranks": ("group_ranks", _unquoted),
    "Rank": ("rank", int),
    "Src Rank": ("src_rank", int),
    "Dst Rank": ("dst_rank", int),
    "Seq": ("seq", int),
    "Is asynchronized op": ("is_async", lambda text: text in ("1", "true")),
}


def event_metadata(kineto_args: Mapping[str, str]) -> EventMetadata | None:
    """Parse an event's arguments, JSON texts by Kineto's keys; None if none is valid."""
    known: dict[str, Any] = {}
    for key, (name, read) in _FIELDS.items():
        text = kineto_args.get(key)
        if text is not None:
            with contextlib.suppress(ValueError, RecursionError):
                known[name] = read(text)
    return EventMetadata(**known) if known else None
