"""The traces that a profile exports: of each cycle, with the user's additions, and with which id."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from support.programs.profiled_steps import plan, run_steps, work

from pytest_opprof import profile
from pytest_opprof.profiler.handlers import tensorboard_trace_handler


def loaded(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    return document


def test_trace_can_be_exported_again_and_again(tmp_path: Path) -> None:
    with profile(record_shapes=True) as prof:
        work(0)
    prof.export_chrome_trace(tmp_path / "a.json")
    prof.add_metadata("note", 'said "after"\n')
    prof.add_metadata_json("limits", "[1, 2]")
    prof.preset_metadata_json("preset", "{}")
    prof.export_chrome_trace(str(tmp_path / "b.json.gz"))
    first, second = loaded(tmp_path / "a.json"), loaded(tmp_path / "b.json.gz")
    assert [event["name"] for event in first["traceEvents"] if event.get("cat") == "user_annotation"] == [
        "outer",
        "inner 0",
    ]
    assert "note" not in first
    assert (second["note"], second["limits"], second["preset"]) == ('said "after"\n', [1, 2], {})
    assert second["record_shapes"] == 1
    assert first["trace_id"] == second["trace_id"] == prof.get_trace_id()


def test_trace_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with profile() as prof:
        work(0)
    with pytest.raises(OSError, match="missing"):
        prof.export_chrome_trace(tmp_path / "missing" / "a.json")


def test_each_cycle_exports_its_own_trace(tmp_path: Path) -> None:
    with profile(schedule=plan("SSN"), on_trace_ready=tensorboard_trace_handler(tmp_path, "rank0")) as prof:
        run_steps(prof, 2)
    written = sorted(tmp_path.iterdir())
    inner = [
        [event["name"] for event in loaded(path)["traceEvents"] if event["name"].startswith("inner")]
        for path in written
    ]
    assert inner == [["inner 0"], ["inner 1"]]
    prof.cycles[0].export_chrome_trace(tmp_path / "again.json")
    assert loaded(tmp_path / "again.json")["trace_id"] == loaded(written[0])["trace_id"]


def test_trace_ids_are_the_users_to_choose() -> None:
    with profile(schedule=plan("SSN"), custom_trace_id_callback=lambda: "first") as prof:
        assert prof.get_trace_id() == "first"
        prof.set_custom_trace_id_callback(lambda: "second")
        run_steps(prof, 2)
    assert [cycle.trace_id for cycle in prof.cycles] == ["first", "second"]


def test_distributed_jobs_are_named_in_the_trace(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    distributed = pytest.importorskip("torch.distributed")
    if not distributed.is_available():
        pytest.skip("this torch has no distributed package")
    distributed.init_process_group("gloo", rank=0, world_size=1, store=torch.distributed.HashStore())
    try:
        with profile() as prof:
            work(0)
        prof.export_chrome_trace(tmp_path / "a.json")
        expected = torch.profiler.profile()._get_distributed_info()
    finally:
        distributed.destroy_process_group()
    info = loaded(tmp_path / "a.json")["distributedInfo"]
    assert info == expected
    assert (info["backend"], info["rank"], info["world_size"]) == ("gloo", 0, 1)
    # HTA finds the rank by exactly this spelling.
    assert '"rank": 0' in (tmp_path / "a.json").read_text(encoding="utf-8")
