"""Which test `opprof accept` takes a name for."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.baselines.accepted import read_accepted
from pytest_opprof.cli.main import main
from pytest_opprof.compare.last import keep_last
from pytest_opprof.compare.sessions import compare_runs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The ``.opprof`` of a project in which two tests regressed."""
    monkeypatch.chdir(tmp_path)
    base, head = (
        simple_run(*(simple_test({"aten::mul": many}, node_id=f"tests/t.py::test_{name}") for name in "xy"))
        for many in (1, 2)
    )
    (tmp_path / ".opprof").mkdir()
    created = datetime(2026, 1, 3, tzinfo=UTC)
    keep_last(tmp_path / ".opprof", compare_runs(base, head, created=created, opprof_version="0.1.0"))
    return tmp_path / ".opprof"


@pytest.mark.parametrize("test", ["test_x", "_x", "tests/t.py::test_x"])
def test_a_unique_part_names_the_test(folder: Path, test: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["accept", test, "--reason", "so"]) == 0
    assert "Accepted for tests/t.py::test_x until the next baseline" in capsys.readouterr().out
    assert {entry.test for entry in read_accepted(folder).values()} == {"tests/t.py::test_x"}


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("test_", "'test_' matches tests/t.py::test_x, tests/t.py::test_y: give a longer part"),
        ("test_xx", "the last comparison has no test 'test_xx' (did you mean 'tests/t.py::test_x'?)"),
        ("entirely different", "the last comparison has no test 'entirely different'"),
    ],
    ids=["several", "near", "none"],
)
def test_no_only_test_is_one_sentence(
    folder: Path, test: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["accept", test, "--reason", "so"]) == 2
    assert told in capsys.readouterr().err
    assert read_accepted(folder) == {}
