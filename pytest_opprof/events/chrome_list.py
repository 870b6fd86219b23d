"""Events as a JSON list of Chrome trace events: torch's ``EventList.export_chrome_trace``, for any name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import count

from pytest_opprof.events.function_event import FunctionEvent


def trace_pieces(events: Iterable[FunctionEvent], *, device: str | None) -> Iterator[str]:
    """The JSON text of a list, in microseconds: each event with a trace name, an arrow for each kernel.

    Arrows lead to `device`; without one, to the event's own, or to ``cuda``.
    """
    arrows = count()
    before = "["
    for event in events:
        if event.trace_name is None:
            continue
        name, thread = json.dumps(event.trace_name), event.thread
        track = json.dumps(f" node_id:{event.node_id}, thread_id:{thread} ") if event.is_remote else thread
        begin = event.time_range.start
        yield (
            f'{before}{{"name": {name}, "ph": "X", "ts": {begin}, "dur": {event.time_range.elapsed_us()}, '
            f'"tid": {track}, "pid": "CPU functions", "args": {{}}}}'
        )
        before = ", "
        category = f"cpu_to_{device or event.use_device or 'cuda'}"
        for _ in event.kernels:
            yield (
                f', {{"name": {name}, "ph": "s", "ts": {begin}, "tid": {thread}, "pid": "CPU functions", '
                f'"id": {next(arrows)}, "cat": "{category}", "args": {{}}}}'
            )
    yield "]" if before == ", " else "[]"
