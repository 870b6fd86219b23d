"""The tests that `opprof merge --collected` expects."""

from pathlib import Path

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.cli.main import main
from pytest_opprof.results.files import write_run

COLLECTED = """\
test_it.py::test_a
test_it.py::test_b

=============================== warnings summary ===============================
test_it.py:3
  /srv/test_it.py:3: UserWarning: std::vector is slow
    warnings.warn("std::vector is slow")

-- Docs: https://docs.pytest.org/en/stable/how-to/capture-warnings.html
2 tests collected in 0.01s
"""


def test_a_summary_of_warnings_names_no_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(Path("run.json"), simple_run(simple_test({"aten::mul": 1}, node_id="test_it.py::test_a")))
    Path("collected.txt").write_text(COLLECTED)
    assert main(["merge", "-o", "out.json", "--collected", "collected.txt", "run.json"]) == 1
    missing = [line for line in capsys.readouterr().out.splitlines() if line.startswith("missing: ")]
    assert missing == ["missing: 1 of 2 collected tests: test_it.py::test_b"]
