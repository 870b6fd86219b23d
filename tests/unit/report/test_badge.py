"""A badge, as shields.io reads the JSON of an endpoint."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.documents.compared import cloning, compared, mixed, named, regressions, slower
from support.documents.strategies import simple_run

from pytest_opprof.cli.main import main
from pytest_opprof.compare.document import write_comparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.report.badge import badge
from pytest_opprof.report.summary import Judged
from pytest_opprof.results.run import Outcome

# https://shields.io/badges/endpoint-badge: the types of an endpoint's fields, and the named colors.
TYPES = {"schemaVersion": int, "label": str, "message": str, "color": str, "isError": bool}
COLORS = {"brightgreen", "green", "yellowgreen", "yellow", "orange", "red", "blue", "lightgrey"}
RUN = simple_run(named("test_a", {"aten::mul": 1}), name="main")
BROKEN = simple_run(*RUN.tests, named("test_b", {"aten::mul": 1}, outcome=Outcome.FAILED))


def shown(judged: Judged) -> tuple[str, str, bool]:
    found = json.loads(badge(judged))
    assert {name: type(value) for name, value in found.items()} == TYPES
    assert (found["schemaVersion"], found["label"]) == (1, "opprof")
    assert found["color"] in COLORS
    return found["message"], found["color"], found["isError"]


@pytest.mark.parametrize(
    ("judged", "message", "color", "is_error"),
    [
        (compared(RUN, RUN), "no regressions", "brightgreen", False),
        (cloning(), "1 regression", "red", True),
        (regressions(2), "2 regressions", "red", True),
        (compared(None, RUN), "nothing compared", "lightgrey", False),
        (compared(simple_run(name="main"), RUN), "nothing compared", "lightgrey", False),
        (slower(), "2 regressions", "red", True),
        (compared(RUN, BROKEN), "no regressions, 1 test failed", "yellow", True),
        (compared(None, BROKEN), "nothing compared, 1 test failed", "lightgrey", True),
    ],
    ids=["same", "one", "two", "no baseline", "new alone", "times", "failed", "failed without a baseline"],
)
def test_message_names_the_failure(judged: Judged, message: str, color: str, is_error: bool) -> None:
    assert shown(judged) == (message, color, is_error)


def test_every_failing_verdict_is_counted() -> None:
    message, color, is_error = shown(mixed())
    assert message == "1 in error, 2 regressions, 1 inconclusive"
    assert (color, is_error) == ("red", True)


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict.INCONCLUSIVE, ("1 inconclusive", "yellow", True)),
        (Verdict.MISSING, ("1 missing", "red", True)),
        (Verdict.CHANGED, ("no regressions", "brightgreen", False)),
        (Verdict.IMPROVED, ("no regressions", "brightgreen", False)),
        (Verdict.ACCEPTED, ("no regressions", "brightgreen", False)),
    ],
)
def test_each_verdict_alone_has_its_color(verdict: Verdict, expected: tuple[str, str, bool]) -> None:
    comparison = compared(RUN, RUN)
    (test,) = comparison.tests
    assert shown(replace(comparison, tests=(replace(test, verdict=verdict),))) == expected


@pytest.mark.parametrize(
    ("wrong", "why"),
    [("badge.json/below.json", "a part of its path is a file"), ("folder", "it is a folder")],
)
def test_a_path_that_cannot_be_written_leaves_the_earlier_badge(
    wrong: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_comparison(Path("comparison.json"), cloning())
    written = ["report", "comparison.json", "--format", "badge", "-o"]
    assert main([*written, "badge.json"]) == 0
    before = Path("badge.json").read_bytes()
    assert json.loads(before)["message"] == "1 regression"
    Path("folder").mkdir()
    assert main([*written, wrong]) == 5
    assert f"opprof: {wrong} cannot be written: {why}" in capsys.readouterr().err
    assert Path("badge.json").read_bytes() == before
    assert {path.name for path in tmp_path.rglob("*")} == {"badge.json", "comparison.json", "folder"}
