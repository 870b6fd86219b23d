"""The last lines of a session."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.documents.compared import mixed

from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.plugin.closing import summarize

ADVICE = "intended? opprof accept"


def lines_of(comparison: Comparison, *, verbosity: int, failures: tuple[str, ...] = ()) -> list[str]:
    """The output of a session with this comparison."""
    found: list[str] = []
    plugins = {"session": SimpleNamespace(exitstatus=pytest.ExitCode.TESTS_FAILED)}
    config = SimpleNamespace(
        get_verbosity=lambda: verbosity, pluginmanager=SimpleNamespace(get_plugin=plugins.get)
    )
    session: Any = SimpleNamespace(
        comparison=comparison,
        config=config,
        width=100,
        notes={},
        failures=failures,
        printed=[],
        fails=lambda test: test.verdict is Verdict.REGRESSED,
    )
    reporter = SimpleNamespace(
        write_line=lambda text, **_: found.append(text), section=lambda title, **_: found.append(title)
    )
    summarize(session, cast("pytest.TerminalReporter", reporter))
    return found


def test_a_quiet_session_says_whose_its_lines_are() -> None:
    lines = lines_of(mixed(), verbosity=-1)
    assert lines
    assert all(line.startswith("opprof: ") for line in lines)


def test_comparison_shows_the_accept_command() -> None:
    assert any(ADVICE in line for line in lines_of(mixed(), verbosity=0))


def test_without_a_baseline_there_is_nothing_to_accept() -> None:
    alone = replace(mixed(), base=None)
    assert not any(ADVICE in line for line in lines_of(alone, verbosity=0))


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (". cannot be written: it is a folder. Choose another name", ". cannot be written: it is a folder"),
        ("no baseline for main. Record one: opprof baseline save", "no baseline for main"),
    ],
)
def test_the_last_line_has_the_first_sentence_of_a_failure(failure: str, why: str) -> None:
    alone = replace(mixed(), tests=())
    assert lines_of(alone, verbosity=0, failures=(failure,))[-1] == f"exit 1: {why}"
