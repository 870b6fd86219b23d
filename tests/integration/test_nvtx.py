"""NVTX ranges of other libraries, through the nvtx package.

Each test has its own process: the package looks for its tool once, when it is imported.
"""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from support.programs.children import answer_of, run_python
from support.programs.injected_ranges import PRELUDE, exported, unarmed

from pytest_opprof.capture.injection import NVTX

pytestmark = pytest.mark.skipif(importlib.util.find_spec("nvtx") is None, reason="nvtx is not installed")

UNARMED = unarmed(NVTX)
EXPORTED = exported(NVTX)


def test_ranges_of_a_library_nest_with_ours() -> None:
    said = answer_of(
        PRELUDE
        + """
    assert NVTX.arm() is None
    import nvtx

    start("nvtx")
    with nvtx.annotate("outer", domain="solver", color=0x00AA33, category="io", payload=5):
        with record_function("ours"):
            nvtx.push_range("日本 inner", payload=2.5)
            nvtx.mark("here", domain="solver")
            nvtx.pop_range()

    def work():
        with nvtx.annotate("on a thread"):
            pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    recording = collector.stop()
    with nvtx.annotate("after"):
        pass
    print(json.dumps([recording.sources, rows(recording, fields(recording))]))
    """,
        environment=UNARMED,
    )
    sources, rows = said
    assert sources == ["ranges", "nvtx"]
    (outer, ours, inner, here, thread) = rows
    assert outer[:3] == ["outer", None, 4]
    color = outer[3].pop("color")
    assert color[3:].lower() == "00aa33"
    assert outer[3] == {"domain": "solver", "category": "io", "payload": 5}
    assert ours == ["ours", "outer", 1, {}]
    assert inner[:3] == ["日本 inner", "ours", 4]
    assert inner[3]["payload"] == 2.5
    assert here[:3] == ["here", "日本 inner", 7]
    assert thread[:3] == ["on a thread", None, 4]


def test_started_ranges_end_on_any_thread() -> None:
    said = answer_of(
        PRELUDE
        + """
    assert NVTX.arm() is None
    import nvtx

    start("nvtx")
    first, second = nvtx.start_range("first"), nvtx.start_range("second")
    with record_function("between"):
        pass
    nvtx.end_range(first)
    thread = threading.Thread(target=nvtx.end_range, args=(second,))
    thread.start()
    thread.join()
    third = nvtx.start_range("third")
    recording = collector.stop()
    nvtx.end_range(third)
    finished = [duration >= 0 for duration in recording.duration_ns]
    print(json.dumps([rows(recording, fields(recording)), [flag & 0x10 for flag in recording.flags], finished]))
    """,
        environment=UNARMED,
    )
    rows, is_async, finished = said
    assert [row[:2] for row in rows] == [
        ["first", None],
        ["second", None],
        ["between", None],
        ["third", None],
    ]
    assert is_async == [0x10, 0x10, 0, 0x10]
    assert finished == [True, True, True, False]


def test_ranges_are_recorded_only_when_asked_for() -> None:
    said = answer_of(
        PRELUDE
        + """
    import nvtx

    start()
    with nvtx.annotate("not asked for"):
        pass
    recording = collector.stop()
    print(json.dumps([recording.sources, rows(recording, fields(recording))]))
    """,
        environment=EXPORTED,
    )
    assert said == [["ranges"], []]


def test_trace_shows_a_ranges_payload(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    answer_of(
        PRELUDE
        + f"""
    import nvtx

    start("nvtx")
    with nvtx.annotate("range", domain="solver", color=0xFF102030, category=3, payload=-4):
        pass
    collector.stop().write_chrome_trace({str(trace)!r})
    print("null")
    """,
        environment=EXPORTED,
    )
    events: list[dict[str, Any]] = json.loads(trace.read_text())["traceEvents"]
    (event,) = [event for event in events if event["name"] == "range"]
    assert event["cat"] == "user_annotation"
    shown = {key: event["args"][key] for key in ("domain", "color", "category", "payload")}
    assert shown == {"domain": "solver", "color": "#ff102030", "category": 3, "payload": -4}


def test_library_does_nothing_without_a_recording() -> None:
    """The variable reaches child processes that never import us."""
    done = run_python(
        """
    import nvtx, sys
    for number in range(1000):
        with nvtx.annotate(f"range {number}", domain="solver"):
            nvtx.mark("mark")
    assert not any(name.startswith("pytest_opprof") for name in sys.modules)
    """,
        environment=EXPORTED,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_arming_after_the_package_is_too_late() -> None:
    said = answer_of(
        PRELUDE + "\n    import nvtx\n    print(json.dumps([NVTX.arm(), NVTX.is_armed]))",
        environment=UNARMED,
    )
    reason, armed = said
    assert reason.startswith("nvtx was imported before the NVTX collector was set up: export NVTX_INJ")
    assert armed is False
