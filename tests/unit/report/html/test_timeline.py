"""The traces of a folder, by test."""

import json
from pathlib import Path

import pytest

from pytest_opprof.errors import DocumentError
from pytest_opprof.report.html.timeline import timelines, traces_by_test
from pytest_opprof.results.names import trace_stem

TEST = "tests/test_a.py::test_x"


def test_files_belong_to_the_test_whose_name_they_have(tmp_path: Path) -> None:
    stem = trace_stem(TEST)
    mine = [f"{stem}.json.gz", f"{stem}.base.json.gz", f"{stem}.head.json", f"{stem}.cycle1.json.gz"]
    for name in (*mine, f"{stem}x.json.gz", f"{stem}.txt", "other-0000.json.gz"):
        (tmp_path / name).touch()
    found = traces_by_test(tmp_path, [TEST, "tests/test_b.py::test_y"])
    assert {node_id: [path.name for path in paths] for node_id, paths in found.items()} == {
        TEST: sorted(mine)
    }


def test_a_timeline_has_each_name_once(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 1, "tid": 1, "ts": at, "dur": 2}
        for at in (1, 5)
    ]
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    (found,) = timelines([path])
    assert found["title"] == "all of a.json"
    assert found["names"] == ["aten::mul"]
    assert found["slices"] == [[0, 0, 0, 0, 2_000, "op"], [0, 0, 0, 4_000, 2_000, "op"]]


def test_a_file_that_is_no_trace_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[", encoding="utf-8")
    with pytest.raises(DocumentError, match=r"a\.json is no whole Chrome trace"):
        timelines([path])
