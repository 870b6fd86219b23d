"""Lists of Chrome trace events."""

import json
from pathlib import Path

from pytest_opprof import EventList, FunctionEvent


def test_any_name_is_valid_json(tmp_path: Path) -> None:
    odd = 'a"b\\c\n日本\ud800'
    event = FunctionEvent(id=1, name=odd, trace_name=odd, thread=4, start_us=1.5, end_us=3.0)
    event.append_kernel("gemm", 0, 1.0)
    hidden = FunctionEvent(id=2, name="[memory]", thread=4, start_us=2, end_us=2)
    EventList([event, hidden], use_device="xpu").export_chrome_trace(tmp_path / "list.json")
    (slice_, arrow) = json.loads((tmp_path / "list.json").read_bytes())
    assert (slice_["name"], slice_["ts"], slice_["dur"], slice_["tid"]) == (odd, 1.5, 1.5, 4)
    assert (arrow["ph"], arrow["cat"], arrow["id"]) == ("s", "cpu_to_xpu", 0)


def test_remote_events_have_their_node(tmp_path: Path) -> None:
    event = FunctionEvent(
        id=1, name="a", trace_name="a", thread=4, start_us=0, end_us=1, node_id=3, is_remote=True
    )
    EventList([event]).export_chrome_trace(tmp_path / "list.json")
    assert json.loads((tmp_path / "list.json").read_bytes())[0]["tid"] == " node_id:3, thread_id:4 "


def test_no_events_are_an_empty_list(tmp_path: Path) -> None:
    EventList([]).export_chrome_trace(tmp_path / "list.json")
    assert json.loads((tmp_path / "list.json").read_bytes()) == []
