"""The page of costs and false alarms in public suites, from stored results."""

import json
from pathlib import Path

import pytest

from benchmarks.adoption.page import page
from benchmarks.adoption.projects import PROJECTS, SESSIONS, Project
from benchmarks.adoption.results import Cell, Figures, load, save
from benchmarks.adoption.sessions import read_verdicts

PROJECT = Project(name="widgets", older="1.0", newer="2.0", tests=("tests",))


def cell(
    tests_s: float,
    *,
    peak_mib: float = 100,
    verdicts: dict[str, int] | None = None,
    causes: dict[str, int] | None = None,
    failures: dict[str, str] | None = None,
) -> Cell:
    return Cell(
        code=0,
        tests=10,
        failed=0,
        whole_s=tests_s + 2,
        tests_s=tests_s,
        peak_mib=peak_mib,
        verdicts=verdicts or {},
        causes=causes or {},
        failures=failures or {},
    )


def row_of(cells: dict[str, Cell]) -> list[str]:
    text = page([PROJECT], {"widgets": Figures(commit="abc, 2026-01-01", sources="", cells=cells)})
    [row] = [line for line in text.splitlines() if line.startswith("| widgets |")]
    return [part.strip() for part in row.strip("|").split("|")]


def test_names_of_projects_and_sessions_differ() -> None:
    assert len({project.name for project in PROJECTS}) == len(PROJECTS)
    assert len({session.title for session in SESSIONS}) == len(SESSIONS)


def test_row_compares_costs_with_plain_sessions() -> None:
    same = cell(20, peak_mib=150.0)
    row = row_of({"plain": cell(10), "save": cell(40), "same code": cell(25), "same code again": same})
    assert row[2:7] == ["10", "10.0 s (12.0 s)", "2.0 (1.8)", "4.0 (3.5)", "+50 MiB (+50 %)"]


def test_false_alarms_name_their_session() -> None:
    cells = {session.title: cell(10, verdicts={"pass": 10}) for session in SESSIONS}
    assert row_of(cells)[8] == "0"
    cells["random order"] = cell(10, verdicts={"pass": 7, "regressed": 2, "inconclusive": 1})
    assert "random order: 2 regressed, 1 inconclusive" in row_of(cells)[8]


def test_a_false_alarm_stands_with_all_its_sessions() -> None:
    said = {"test_x": "error: it cannot be repeated", "test_y": "error: it cannot be repeated"}
    failed = cell(10, verdicts={"pass": 8, "error": 2}, failures=said)
    figures = Figures(commit="abc", sources="", cells={"same code": failed, "two workers": failed})
    text = page([PROJECT], {"widgets": figures})
    assert (
        "| 2 | `test_x` | same code, two workers | `error: it cannot be repeated` | not looked at |" in text
    )


def test_a_session_without_a_comparison_is_not_zero() -> None:
    cells = {session.title: cell(10, verdicts={"pass": 10}) for session in SESSIONS}
    cells["two workers"] = cell(10, verdicts={"no comparison": 1})
    assert "two workers: nothing was compared" in row_of(cells)[8]


def test_a_project_that_did_not_run_says_so() -> None:
    assert "| not run |" in page([PROJECT], {})


def test_figures_are_kept(tmp_path: Path) -> None:
    figures = Figures(commit="abc", sources="def", cells={"plain": cell(1, causes={"x": 2})})
    save(tmp_path, "widgets", figures)
    assert load(tmp_path) == {"widgets": figures}


@pytest.mark.parametrize("kept", [True, False], ids=["compared", "crashed"])
def test_failures_are_grouped_by_cause(tmp_path: Path, *, kept: bool) -> None:
    document = tmp_path / "comparison.json"
    change = {"op": "aten::clone", "metric": "count", "verdict": "regressed", "rewrite": None}
    failed = {"verdict": "regressed", "reason": "", "changes": [change | {"cause": "new", "reason": ""}]}
    tests = [failed | {"node_id": "a"}, failed | {"node_id": "b"}]
    total = change | {"op": None, "metric": "python.instructions", "cause": "in f, a.py (+5); g, b.py (+2)"}
    unchanged_op = change | {"verdict": "changed", "cause": "", "reason": ""}
    tests.append(
        {
            "node_id": "e",
            "verdict": "regressed",
            "reason": "",
            "changes": [unchanged_op, total | {"reason": ""}],
        }
    )
    tests.append({"node_id": "c", "verdict": "pass", "reason": "", "changes": []})
    tests.append({"node_id": "d", "verdict": "missing", "reason": "it did not run; accept it", "changes": []})
    if kept:
        document.write_text(json.dumps({"tests": tests}))
    verdicts, causes, failures = read_verdicts(document)
    if kept:
        assert verdicts == {"regressed": 3, "pass": 1, "missing": 1}
        assert causes == {
            "regressed: aten::clone, new": 2,
            "regressed: python.instructions, in f, a.py": 1,
            "missing: it did not run": 1,
        }
        assert failures["d"] == "missing: it did not run"
    else:
        assert verdicts == {"no comparison": 1}
