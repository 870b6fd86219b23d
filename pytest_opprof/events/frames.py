"""Events and averages as data frames. Recordings are converted by column, without event objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from pytest_opprof.capture.native_calls import name_text, printable
from pytest_opprof.events.function_event import FunctionEvent
from pytest_opprof.events.function_event_avg import FunctionEventAvg
from pytest_opprof.events.kineto_recording import RecordingView
from pytest_opprof.extras import needed
from pytest_opprof.kinds import EventKind

# The numbers of each event.
_COLUMNS: Final = (
    "start_ns",
    "duration_ns",
    "self_ns",
    "parent",
    "thread",
    "step",
    "launcher",
    "kind",
    "scope",
    "flags",
    "sequence_nr",
    "forward_thread",
    "cpu_memory",
    "self_cpu_memory",
    "device_memory",
    "self_device_memory",
    "flops",
)
# By the numbers in the column `kind`; no event has kind 0.
_KINDS: Final = ["", *(kind.name.lower() for kind in EventKind)]
_ARROW_TYPES: Final = {"q": "int64", "i": "int32", "I": "uint32", "B": "uint8"}
_SHARED: Final = (
    "cpu_time_total_ns",
    "self_cpu_time_total_ns",
    "device_time_total_ns",
    "self_device_time_total_ns",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "flops",
    "overload_name",
    "node_id",
    "scope",
    "is_async",
    "is_user_annotation",
)
_OF_AVERAGES: Final = ("key", "count", *_SHARED, "is_background", "is_legacy", "use_device")
_OF_EVENTS: Final = ("id", "name", "start_ns", "end_ns", "thread", "sequence_nr", "device_index", *_SHARED)


def recordings_to_arrow(recordings: Sequence[RecordingView]) -> Any:
    """One ``pyarrow.Table`` of recordings. It shares native memory, and keeps it alive."""
    arrow = needed("pyarrow", extra="frames", by="to_arrow()")
    tables = []
    for number, recording in enumerate(recordings):
        columns = {name: _arrow_view(arrow, getattr(recording, name)) for name in _COLUMNS}
        columns["kind"] = arrow.DictionaryArray.from_arrays(columns["kind"], arrow.array(_KINDS))
        first = {
            "recording": arrow.repeat(arrow.scalar(number, arrow.int32()), len(recording)),
            "name": _arrow_names(arrow, recording),
        }
        tables.append(arrow.table(first | columns))
    return arrow.concat_tables(tables, promote_options="permissive")


def _arrow_view(arrow: Any, buffer: memoryview[int]) -> Any:
    numbers = getattr(arrow, _ARROW_TYPES[buffer.format])()
    return arrow.Array.from_buffers(numbers, len(buffer), [None, arrow.py_buffer(buffer)])


def _arrow_names(arrow: Any, recording: RecordingView) -> Any:
    # Look up the text of each distinct name once, not once per event.
    encoded = _arrow_view(arrow, recording.name_id).dictionary_encode()
    texts = [printable(name_text(number)) for number in encoded.dictionary.to_pylist()]
    return arrow.DictionaryArray.from_arrays(encoded.indices, arrow.array(texts, arrow.string()))


def recordings_to_pandas(recordings: Sequence[RecordingView]) -> Any:
    """One ``pandas.DataFrame`` of recordings. A single recording shares its native memory."""
    pandas, numpy = (needed(name, extra="frames", by="to_pandas()") for name in ("pandas", "numpy"))
    frames = []
    for number, recording in enumerate(recordings):
        columns = {name: numpy.asarray(getattr(recording, name)) for name in _COLUMNS}
        columns["kind"] = pandas.Categorical.from_codes(columns["kind"].astype("int8"), _KINDS)
        first = {
            "recording": numpy.full(len(recording), number, dtype="int32"),
            "name": _pandas_names(pandas, numpy, recording),
        }
        frames.append(pandas.DataFrame(first | columns, copy=False))
    return frames[0] if len(frames) == 1 else pandas.concat(frames, ignore_index=True)


def _pandas_names(pandas: Any, numpy: Any, recording: RecordingView) -> Any:
    numbers, codes = numpy.unique(numpy.asarray(recording.name_id), return_inverse=True)
    return pandas.Categorical.from_codes(codes, [printable(name_text(int(number))) for number in numbers])


def rows_to_arrow(rows: Iterable[FunctionEvent | FunctionEventAvg]) -> Any:
    """A ``pyarrow.Table`` of events or averages."""
    return needed("pyarrow", extra="frames", by="to_arrow()").Table.from_pylist(
        [_record(row) for row in rows]
    )


def rows_to_pandas(rows: Iterable[FunctionEvent | FunctionEventAvg]) -> Any:
    """A ``pandas.DataFrame`` of events or averages."""
    return needed("pandas", extra="frames", by="to_pandas()").DataFrame([_record(row) for row in rows])


def _record(row: FunctionEvent | FunctionEventAvg) -> dict[str, Any]:
    names = _OF_EVENTS if isinstance(row, FunctionEvent) else _OF_AVERAGES
    record = {name: getattr(row, name) for name in names}
    record["device_type"] = str(row.device_type)
    # Shapes and stacks nest to any depth; rows are grouped by them as text.
    record["input_shapes"] = str(row.input_shapes) if row.input_shapes else ""
    record["stack"] = "\n".join(row.stack or ())
    return {name: printable(value) if isinstance(value, str) else value for name, value in record.items()}
