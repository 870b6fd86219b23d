"""A trace from a file, as a recording."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from pytest_opprof.capture.cpp_stacks import CppFrame
from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check, name_text
from pytest_opprof.capture.op_groups import OpGroup
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.window import RecordingStats
from pytest_opprof.errors import DocumentError

_DIMS: Final = ("Input Dims", "Input dims")
_NAMED_VALUES: Final[Mapping[str, bool | None]] = {"": None, "False": False, "True": True}


class ImportedEvent:
    """The arguments of an event, with those methods of Kineto's events that a file's ``args`` can answer."""

    __slots__ = ("_args",)

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._args = args

    def extra_meta(self) -> dict[str, str]:
        """All arguments as JSON text."""
        return {key: json.dumps(value) for key, value in self._args.items()}

    def external_id(self) -> int:
        """Kineto's number of the op that caused it; 0 for none."""
        return self._number("External id", 0)

    def python_id(self) -> int:
        """Number of a Python call; -1 for none."""
        return self._number("Python id", -1)

    def python_parent_id(self) -> int:
        """Number of the call around it; -1 for none."""
        return self._number("Python parent id", -1)

    def python_module_id(self) -> int:
        """Number of the module called; -1 for none."""
        return self._number("Python module id", -1)

    def stack(self) -> list[str]:
        """The calls it was made from, if the file has them."""
        text = self._args.get("Call stack")
        return text.split(";") if isinstance(text, str) and text else []

    def _number(self, key: str, otherwise: int) -> int:
        value = self._args.get(key)
        return value if isinstance(value, int) else otherwise


class ImportedRecording(Recording):
    """A trace file in the columns of a recording. `args` gives an event's arguments as in the file."""

    @staticmethod
    def _free(result: Any) -> None:
        """Also drop cached names, because the next trace reuses their numbers."""
        name_text.cache_clear()
        lib.op_result_free(result)

    @property
    def native(self) -> Any:
        """The collector's result, for functions that take several; it lives as long as this object."""
        return self._result

    def args(self, event: int) -> dict[str, Any]:
        """The ``args`` of an event, as the file has them.

        Raises a `DocumentError` if they are nested too deeply for Python.
        """
        text = ffi.new("char **")
        length = ffi.new("uint64_t *")
        with self._lock:
            check(lib.op_result_event_args(self._result, event, text, length))
            members = bytes(ffi.buffer(text[0], length[0]))
        return parse_members(members, where=f"the args of event {event} ({self.name(event)!r:.80})")

    def kineto_event(self, event: int) -> ImportedEvent:
        """What the file says about an event beyond its columns."""
        return ImportedEvent(self._latest_args(event))

    def cpp_stack(self, event: int) -> tuple[CppFrame, ...]:
        """The C++ functions inside the innermost Python call, innermost first; only our traces have them."""
        text = self._latest_args(event).get("C++ stack")
        names = text.split(";") if isinstance(text, str) and text else []
        return tuple(CppFrame(function="" if name == "??" else name) for name in names)

    def _latest_args(self, event: int) -> dict[str, Any]:
        """The arguments of an event, cached because readers ask several things of one event."""
        if self._latest[0] != event:
            self._latest = (event, self.args(event))
        return self._latest[1]

    _latest: tuple[int, dict[str, Any]] = (-1, {})

    def parted_groups(self, *, by_inputs: bool, by_overload: bool, stack_depth: int) -> list[OpGroup] | None:
        """None if stacks are asked for, because each event's arguments may have its own."""
        if stack_depth:
            return None
        return super().parted_groups(by_inputs=by_inputs, by_overload=by_overload, stack_depth=0)

    def inputs(self, event: int) -> Inputs | None:
        """The inputs of an op; None if the trace does not have them."""
        args = self._latest_args(event)
        told = next((args[key] for key in _DIMS if isinstance(args.get(key), list)), None)
        if told is None:
            return None
        shapes = [shape if isinstance(shape, list) else [] for shape in told]
        return Inputs(
            shapes=shapes,
            strides=_entries(args.get("Input Strides"), like=shapes, otherwise=[]),
            dtypes=_entries(args.get("Input type"), like=shapes, otherwise=""),
            concrete=[
                _value(text) for text in _entries(args.get("Concrete Inputs"), like=shapes, otherwise="")
            ],
        )

    def args_text(self, event: int) -> str | None:
        """The ``args`` of a ``record_function``; None if there were none."""
        text = self.args(event).get("args")
        return text if isinstance(text, str) else None

    def device_spans(self, windows: Sequence[tuple[int, int]]) -> list[dict[str, int]]:
        """How each device spent its time in each window, device by device: the fields of ``op_device_span``.

        A window is a start and an end, nanoseconds from the trace's start.
        """
        bounds = ffi.new("int64_t[]", [moment for window in windows for moment in window])
        spans = ffi.new("op_device_span **")
        count = ffi.new("uint64_t *")
        names = [name for name, _ in ffi.typeof("op_device_span").fields]
        with self._lock:
            check(lib.op_result_device_spans(self._result, bounds, len(windows), spans, count))
            return [{name: getattr(spans[0][at], name) for name in names} for at in range(count[0])]

    def collectives(self) -> list[int]:
        """The indexes of the timed kernels in which ranks of a job wait for each other."""
        events = ffi.new("uint32_t **")
        count = ffi.new("uint64_t *")
        with self._lock:
            check(lib.op_result_collectives(self._result, events, count))
            return ffi.unpack(events[0], count[0]) if count[0] else []

    @property
    def metadata_text(self) -> bytes:
        """The members of the file's JSON object, without its events and its braces."""
        length = ffi.new("uint64_t *")
        pointer = lib.op_result_members(self._result, length)
        return bytes(ffi.buffer(pointer, length[0]))

    @functools.cached_property
    def stats(self) -> RecordingStats:
        """What was recorded and lost; the losses come from the metadata of our traces."""
        try:
            return super().stats.with_metadata(parse_members(self.metadata_text, where="the metadata"))
        except DocumentError:  # nested too deeply to be ours
            return super().stats

    def _metadata_of_losses(self) -> dict[str, Any]:
        return {}  # the file's own metadata are written again

    @property
    def other_events(self) -> int:
        """The number of events that do not fit the columns, such as flows; traces written again have them."""
        count: int = lib.op_result_other_events(self._result)
        return count

    @property
    def unread_events(self) -> int:
        """The number of these that look like work: their category or times are not those of Kineto."""
        count: int = lib.op_result_unread_events(self._result)
        return count


def parse_members(members: bytes, *, where: str) -> dict[str, Any]:
    """Parse the members of a JSON object.

    Raises a `DocumentError` if they are nested too deeply for Python, or have a number of thousands of
    digits.
    """
    try:
        parsed: dict[str, Any] = json.loads(b"{" + members + b"}")
    except (RecursionError, ValueError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else "a number has too many digits"
        raise DocumentError(f"{where}: {what} to be looked at; it can be written again") from error
    return parsed


def _entries(found: object, *, like: list[Any], otherwise: Any) -> list[Any]:
    """One entry for each input; all `otherwise` if the file has none or another number of them."""
    if isinstance(found, list) and len(found) == len(like):
        return found
    return [otherwise for _ in like]


def _value(text: Any) -> Any:
    """The value that a trace has as text; None for no text. Text other than numbers and lists stays."""
    if not isinstance(text, str):
        return text
    if text[:1] == "[" and text[-1:] == "]":
        return [_value(part.strip()) for part in text[1:-1].split(",")] if text != "[]" else []
    if text in _NAMED_VALUES:
        return _NAMED_VALUES[text]
    for read in (int, float):
        with suppress(ValueError):
            return read(text)
    return text
