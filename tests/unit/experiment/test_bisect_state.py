"""An interrupted bisection's measurements are reused, for the same question only."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_opprof.errors import DocumentError, UsageError
from pytest_opprof.experiment.bisect import BisectState, Question
from pytest_opprof.experiment.one_commit import Measured

QUESTION = Question(
    pattern="ops.count", test="t.py::test_x", good="1" * 40, bad="2" * 40, setup="", python=""
)


def test_measurements_are_resumed_and_failures_retried(tmp_path: Path) -> None:
    state = BisectState(tmp_path / "folder", QUESTION)
    measured = {"1" * 40: Measured(value=3), "2" * 40: Measured(value=None, reason="no build \udcff")}
    for commit, found in measured.items():
        state.keep(commit, found)
    again = BisectState(tmp_path / "folder", QUESTION)
    again.resume()
    assert again.measured == {"1" * 40: Measured(value=3)}
    again.forget()
    with pytest.raises(
        UsageError, match=r"there is nothing to resume: no .*bisect\.json\. Leave out --resume"
    ):
        state.resume()


def test_another_question_is_not_resumed(tmp_path: Path) -> None:
    BisectState(tmp_path, QUESTION).keep("1" * 40, Measured(value=3))
    other = BisectState(tmp_path, replace(QUESTION, setup="make"))
    with pytest.raises(UsageError, match="is of another bisection: its setup is '', not 'make'"):
        other.resume()


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"question": {"a": 1}, "measured": {}}',
        '{"question": {"pattern": "", "test": "", "good": "", "bad": "", "setup": "", "python": ""}, "measured": {"a": {"value": "1"}}}',
    ],
)
def test_foreign_file_is_not_a_state(tmp_path: Path, text: str) -> None:
    path = tmp_path / ".state" / "bisect.json"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(DocumentError, match="is not the state of a bisection"):
        BisectState(tmp_path, QUESTION).resume()
