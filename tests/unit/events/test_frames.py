"""Events and averages as data frames."""

import sys
from typing import Any

import pytest
from support.kineto.forests import HandMadeRecording, Span
from support.kineto.kineto_forests import ForestMaker
from support.programs.windows import Window

from pytest_opprof import EventList, FunctionEvent, KinetoRecording, record_function
from pytest_opprof.capture.recording import Recording
from pytest_opprof.errors import UsageError

pandas = pytest.importorskip("pandas", reason="needs pip install pytest-opprof[frames]")
arrow = pytest.importorskip("pyarrow", reason="needs pip install pytest-opprof[frames]")


def native() -> Recording:
    """A window of our own collector."""
    with Window() as window:
        for _ in range(3):
            with record_function("outer"), record_function("a\ud800b"):
                pass
    return window.recording


RECORDINGS = {
    "native": native,
    "kineto": lambda: KinetoRecording(ForestMaker(7).result()),
}


@pytest.mark.parametrize("make", RECORDINGS.values(), ids=RECORDINGS)
def test_both_frames_match_the_columns(make: Any) -> None:
    recording = make()
    table, frame = EventList([recording]).to_arrow(), EventList([recording]).to_pandas()
    assert table.num_rows == len(frame) == len(recording) > 1
    for column in ("start_ns", "duration_ns", "self_ns", "parent", "thread", "scope", "cpu_memory"):
        expected = list(getattr(recording, column))
        assert table[column].to_pylist() == expected
        assert frame[column].tolist() == expected
    names = [
        recording.name(row).encode("utf-8", "backslashreplace").decode() for row in range(len(recording))
    ]
    assert table["name"].to_pylist() == frame["name"].tolist() == names
    assert table["kind"].to_pylist() == frame["kind"].tolist()
    assert set(table["recording"].to_pylist()) == {0}


def test_native_columns_are_not_copied() -> None:
    recording = native()
    (chunk,) = EventList([recording]).to_arrow()["start_ns"].chunks
    address = arrow.py_buffer(recording.start_ns).address
    assert chunk.buffers()[1].address == address
    frame = EventList([recording]).to_pandas()
    assert frame["start_ns"].to_numpy().__array_interface__["data"][0] == address


def test_a_table_keeps_its_memory_alive() -> None:
    table = EventList([native()]).to_arrow()
    assert [native() for _ in range(3)]
    assert table["name"].to_pylist() == ["outer", "a\\ud800b"] * 3
    assert min(table["duration_ns"].to_pylist()) >= 0


def test_several_recordings_are_distinguished() -> None:
    events = EventList([native(), native()])
    assert (
        events.to_arrow()["recording"].to_pylist()
        == events.to_pandas()["recording"].tolist()
        == [0] * 6 + [1] * 6
    )
    assert set(events.to_pandas()["name"]) == {"outer", "a\\ud800b"}


def test_empty_recording_is_an_empty_frame() -> None:
    with Window() as window:
        pass
    events = EventList([window.recording])
    assert (events.to_arrow().num_rows, len(events.to_pandas())) == (0, 0)
    assert (EventList([]).to_arrow().num_rows, len(EventList([]).to_pandas())) == (0, 0)


def test_averages_and_single_events_are_rows() -> None:
    spans = Span(name="a", start_ns=0, end_ns=9_000), Span(name="b", start_ns=1_000, end_ns=2_000, scope=7)
    rows = EventList([HandMadeRecording([*spans])]).key_averages(group_by_input_shapes=True)
    frame = rows.to_pandas().set_index("key")
    assert frame.loc["a", "self_cpu_time_total_ns"] == 8_000
    assert rows.to_arrow()["count"].to_pylist() == [1, 1]
    single = EventList([FunctionEvent(id=3, name="x", thread=1, start_us=0, end_us=2, stack=["f", "g"])])
    assert single.to_pandas().loc[0, "end_ns"] == 2_000
    assert single.to_arrow()["stack"].to_pylist() == ["f\ng"]


@pytest.mark.parametrize(("library", "call"), [("pyarrow", "to_arrow"), ("pandas", "to_pandas")])
def test_absent_library_is_one_sentence(monkeypatch: pytest.MonkeyPatch, library: str, call: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    for events in (EventList([native()]), EventList([]), EventList([native()]).key_averages()):
        with pytest.raises(
            UsageError, match=f"{call}.. needs {library}: pip install 'pytest-opprof.frames.'"
        ):
            getattr(events, call)()
