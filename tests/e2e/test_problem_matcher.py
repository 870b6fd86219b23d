"""Editors and CI servers find the lines of a failure with the matcher in templates/."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project

FOLDER = "a folder with a name/that takes more columns than the terminal has"
LAYER = """\
    import torch

    CLONES = False

    def forward(x):
        y = x @ x
        return y.clone() if CLONES else y
"""
TESTS = f"""\
    import sys

    import pytest
    import torch

    sys.path.insert(0, {FOLDER!r})
    from layer import forward

    pytestmark = pytest.mark.profile

    def test_one(): forward(torch.ones(4, 4))

    def test_two(): forward(torch.ones(4, 4)).sum()
"""


@pytest.fixture(scope="module")
def matcher(repository: Path) -> dict[str, Any]:
    text = (repository / "templates" / "opprof-problem-matcher.json").read_text(encoding="utf-8")
    (found,) = json.loads(text)["problemMatcher"]
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def regressed(make_project: MakeProject, torch_installed: None) -> Project:
    """A project in which two tests now clone."""
    project = make_project("matched")
    project.write(f"{FOLDER}/layer.py", LAYER)
    project.write("test_it.py", TESTS)
    project.pytest("--opprof-save=main", "--opprof-save-processes=1")
    project.replace(f"{FOLDER}/layer.py", "CLONES = False", "CLONES = True")
    return project


def problems(matcher: dict[str, Any], output: str) -> list[tuple[str, int, str]]:
    """A matcher's findings, matched as GitHub's runner and VS Code do: per line, without colors."""
    (pattern,) = matcher["pattern"]
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    found = (re.search(pattern["regexp"], line) for line in plain.splitlines())
    return [
        (one[pattern["file"]], int(one[pattern["line"]]), one[pattern["message"]]) for one in found if one
    ]


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-q", "--color=yes")], ids=["plain", "quiet"])
def test_a_failure_is_found_at_its_line(
    regressed: Project, matcher: dict[str, Any], options: tuple[str, ...]
) -> None:
    session = regressed.pytest("--opprof-baseline=main", *options, env={"COLUMNS": "60"})
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    place = f"{FOLDER}/layer.py"
    message = f"cause 1, 2 tests: {place}:7 in forward: aten::clone +1 a step"
    assert problems(matcher, session.stdout) == [(place, 7, message)]


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("cause 1, 1 test: a.py:3 in f: aten::mul +1 a step", "a.py"),
        ("opprof: cause 2, 3 tests: a/b.py:3 in C.f: aten::mul +1 to +2 a step: test_a, test_b", "a/b.py"),
        ("cause 1, 1 test: a +1 a step, in range 'x'; b.py:3 in f: b +1 a step", None),
        ("cause 1, 1 test: a.py:3 in f: a +1 a step; b.py:4 in g: b +1 a step", "a.py"),
        ("cause 1, 1 test: a +1 a step, called by the test", None),
        ("cause 1, 1 test: a +1 a step, in range 'x': test_a", None),
        ("cause 1, 1 test: missing, as a.py was collected without it", None),
        ("a.py:6 in forward", None),
    ],
)
def test_only_a_cause_with_a_place_is_found(matcher: dict[str, Any], line: str, file: str | None) -> None:
    assert [found for found, *_ in problems(matcher, line)] == ([file] if file else [])


def test_the_page_shows_the_same_pattern_to_editors(matcher: dict[str, Any], repository: Path) -> None:
    page = (repository / "docs" / "reports.md").read_text(encoding="utf-8")
    _, _, after = page.partition("## Problem matcher")
    (block,) = re.findall(r"```json\n(.*?)\n```", after.partition("\n## ")[0], re.DOTALL)
    (task,) = json.loads(block)["tasks"]
    assert task["problemMatcher"]["pattern"] == matcher["pattern"]
    assert {"owner", "fileLocation", "severity"} <= task["problemMatcher"].keys()
