"""Causes in every report."""

import re

import pytest
from support.documents.compared import compared
from support.documents.strategies import simple_run, simple_test
from support.html.rendered import pages, text_of

from pytest_opprof.compare.common_cause import common_causes
from pytest_opprof.compare.comparison import Comparison, TestComparison
from pytest_opprof.report.annotations import github_annotations
from pytest_opprof.report.causes import ACCEPT, cause_title
from pytest_opprof.report.html.data import page_index
from pytest_opprof.report.markdown import markdown_comment
from pytest_opprof.report.summary import Summary
from pytest_opprof.report.terminal import section_lines, summary_lines


@pytest.fixture
def two_files() -> Comparison:
    """Two causes, whose tests have the same names in different files."""

    def run(count: int) -> list[dict[str, int]]:
        return [{"aten::mul": count, "aten::add": 1}, {"aten::mul": 1, "aten::add": count}]

    base, head = (
        simple_run(
            *(
                simple_test(counts, node_id=f"{file}.py::{name}")
                for file, counts in zip("ab", run(count), strict=True)
                for name in ("test_step", "test_eval")
            ),
            name="main",
        )
        for count in (1, 2)
    )
    return compared(base, head)


def test_names_of_tests_are_unique_in_all_causes(two_files: Comparison) -> None:
    reports = [
        "\n".join(line.text for line in summary_lines(two_files, width=100)),
        "\n".join(line.text for line in summary_lines(two_files, width=100, verbosity=-1)),
        github_annotations(two_files),
        *map(text_of, pages(markdown_comment(two_files))),
        " ".join(
            test["name"] for cause in page_index(Summary.of(two_files))["causes"] for test in cause["tests"]
        ),
    ]
    for text in reports:
        assert all(test.node_id in text for test in two_files.tests)
        assert re.findall(r"(?<!::)test_(?:step|eval)", text) == []


def test_the_first_printed_test_of_a_cause_has_the_command(two_files: Comparison) -> None:
    for cause in common_causes(two_files):
        first, second = cause.tests
        command = f'intended? opprof accept --cause {cause.number} --reason "..."'
        for tests in ([first], [second]):
            assert intended(two_files, tests) == [command]
        see = f"intended? accept cause {cause.number}, see {first.node_id}"
        assert intended(two_files, [first, second]) == [command, see]


def intended(comparison: Comparison, tests: list[TestComparison]) -> list[str]:
    """How the sections of these tests end."""
    lines = section_lines(tests, comparison, width=100, accept=ACCEPT, show="")
    return [line.text for line in lines if line.text.startswith("intended? ")]


def test_a_cause_has_the_bounds_of_all_its_tests() -> None:
    """Tests that exceed limits on one metric share a cause."""
    limits = {"test_a": 1, "test_b": 1, "test_c": 2}
    head = simple_run(
        *(
            simple_test({"w": 3}, node_id=f"a.py::{name}", limits={"w.count": limit})
            for name, limit in limits.items()
        )
    )
    (cause,) = common_causes(compared(None, head))
    assert cause_title(cause) == "cause 1, 3 tests: w.count over its limit (<= 1, <= 2)"
