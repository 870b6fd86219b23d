"""The compatibility table, and its workflow."""

from pathlib import Path

import pytest
import yaml
from matrix.environments import requirements
from matrix.page import page
from matrix.results import Answers, Result, load, read, save
from matrix.rows import COLUMNS, ROWS, Row

ROW = Row(python="3.11", torch="2.15.0")


def test_the_workflow_runs_every_row(repository: Path) -> None:
    workflow = yaml.safe_load((repository / ".github/workflows/compatibility.yml").read_text())
    assert workflow["jobs"]["matrix"]["strategy"]["matrix"]["row"] == [row.name for row in ROWS]


def test_names_of_rows_differ() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_commands_name_existing_tests(repository: Path) -> None:
    named = {word for column in COLUMNS for word in column.command.split() if word.startswith("tests/")}
    assert named
    assert not [path for path in named if not (repository / path).exists()]


def test_a_row_has_the_torch_that_it_names() -> None:
    assert requirements(ROW)[0] == "torch==2.15.0"
    assert not any(one.startswith(("torch", "nvidia")) for one in requirements(Row(python="3.12")))


@pytest.mark.parametrize(
    ("code", "said", "result"),
    [
        (0, "12 passed, 1 skipped in 3 s", Result(holds=True)),
        (1, "2 failed, 12 passed, 1 error in 3 s\nbye", Result(holds=False, detail="3 failed")),
        (2, "no summary", Result(holds=False, detail="ended with 2")),
        (124, "", Result(holds=False, detail="stopped: too slow")),
        (5, "13 deselected in 1 s", Result(holds=False, detail="ended with 5")),
        (
            1,
            "add  9 ns  <= 4 ns  NO\nmm  3 ns  <= 4 ns  yes\nsum  5 ns  <= 4 ns  NO\n",
            Result(holds=False, detail="2 over"),
        ),
    ],
)
def test_cell_holds_its_commands_result(tmp_path: Path, code: int, said: str, result: Result) -> None:
    (tmp_path / "log").write_text(said)
    assert read(code, tmp_path / "log") == result


def test_answers_are_kept(tmp_path: Path) -> None:
    answers = Answers(
        commit="abc, 2026-11-23", sources="these", cells={"ops": Result(holds=False, detail="1 failed")}
    )
    save(tmp_path / "results", ROW.name, answers)
    assert load(tmp_path / "results") == {ROW.name: answers}
    assert load(tmp_path / "none") == {}


def test_page_marks_untried_and_impossible_cells() -> None:
    fresh = Row(python="3.11", suite="bookworm", whole=True)
    gone = Row(python="3.12", torch="2.15.0")
    cells = {"ops": Result(holds=True), "shapes": Result(holds=False, detail="2 failed")}
    answers = {
        ROW.name: Answers(commit="abc, 2026-11-23", sources="", cells=cells),
        gone.name: Answers(
            commit="abd", sources="", cells={"": Result(holds=False, detail="there is no python3.12 here")}
        ),
    }
    text = page([ROW, gone, fresh], answers)
    first, second = (line for line in text.splitlines() if "| 2.15.0 |" in line)
    assert first.startswith("| 3.11 | 2.15.0 | not run | not run | yes | 2 failed | not run |")
    assert first.endswith("| abc, 2026-11-23 |")
    assert "there is no python3.12 here" in second
    assert "| bookworm | its own 3.11 | not run |" in text
