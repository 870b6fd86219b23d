"""The traces that an A/B keeps of regressed tests."""

from pathlib import Path

import pytest
from support.documents.ab_runs import TEST, near, one_test, side

from pytest_opprof.compare.timing.comparison import TimeComparison
from pytest_opprof.compare.timing.judge import compare_times
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.experiment.traces import keep_pairs
from pytest_opprof.results.names import trace_stem

STEM = trace_stem(TEST)


def compared(*, calls: int) -> TimeComparison:
    """An A/B of a test whose head calls an op N times, and whose base calls it twice."""
    times = near(1_000_000)
    return compare_times(side(times), side(times, lambda wall_ns: one_test(wall_ns, count=calls)))


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    found = {name: tmp_path / name for name in ("base", "head")}
    for name, folder in found.items():
        folder.mkdir()
        for cycle in ("cycle2", "cycle10"):
            (folder / f"{STEM}.{cycle}.json.gz").write_text(f"{name} {cycle}", encoding="utf-8")
    return found


def kept(top: Path) -> dict[str, str]:
    folder = top / ".opprof" / "traces"
    return {path.name.partition(".")[2]: path.read_text() for path in folder.glob("*.json.gz")}


def test_the_last_cycle_of_each_side_is_kept(folders: dict[str, Path], tmp_path: Path) -> None:
    comparison = compared(calls=3)
    assert comparison.tests[0].verdict is Verdict.REGRESSED
    (told,) = keep_pairs(comparison, **folders, root=tmp_path)
    assert told.endswith(f"/.opprof/traces/{STEM}.{{base,head}}.json.gz   (opprof view test_x)")
    assert kept(tmp_path) == {"base.json.gz": "base cycle10", "head.json.gz": "head cycle10"}


def test_passing_tests_leave_no_traces(folders: dict[str, Path], tmp_path: Path) -> None:
    assert list(keep_pairs(compared(calls=2), **folders, root=tmp_path)) == []
    assert kept(tmp_path) == {}


def test_base_without_a_trace_is_reported(folders: dict[str, Path], tmp_path: Path) -> None:
    for path in folders["base"].iterdir():
        path.unlink()
    (told,) = keep_pairs(compared(calls=3), **folders, root=tmp_path)
    assert told.endswith("; the base left none")


def test_unwritable_folder_is_reported(folders: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / ".opprof").touch()
    (told,) = keep_pairs(compared(calls=3), **folders, root=tmp_path)
    assert told.startswith("no traces of regressed tests were stored: ")
