"""How far an experiment is, on a terminal and elsewhere."""

import sys
from pathlib import Path

import pytest

from pytest_opprof.cli.ab import _Terminal
from pytest_opprof.experiment.kept import Kept, Plan
from pytest_opprof.experiment.progress import Progress

PLAN = Plan(
    base="1" * 40,
    head="2" * 40,
    prefix="",
    arguments=(),
    setup="",
    python="",
    processes=8,
    max_time=1.0,
    steps=15,
    seed=1,
    opprof_version="0.1.0",
)


def progress(done: int) -> Progress:
    """So many of four processes."""
    return Progress(done=done, total=4, elapsed_s=done)


def test_a_terminal_has_one_line_that_is_drawn_anew(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    terminal = _Terminal("main", is_quiet=False)
    for done in (0, 2, 4):
        terminal.progress(progress(done))
    terminal.tell("a process died")
    clear = "\r\x1b[K"
    first, second = f"[{'.' * 22}] 0/4 processes", f"[{'#' * 11}{'.' * 11}] 2/4 processes"
    drawn = capsys.readouterr().out.split(clear)
    assert [text.rstrip()[: len(first)] for text in drawn] == ["", first, second, "", "a process died"]
    assert all(len(text) < 40 for text in drawn), "a line that is too long could not be taken back"


def test_elsewhere_each_process_is_a_line_and_quiet_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    for is_quiet in (False, True):
        terminal = _Terminal("main", is_quiet=is_quiet)
        terminal.tell("begins")
        for done in (0, 1, 2):
            terminal.progress(progress(done))
    assert capsys.readouterr().out.splitlines() == [
        "begins",
        "1/4 processes · 00:01 elapsed",
        "2/4 processes · 00:02 elapsed",
    ]


def test_an_early_end_says_how_to_go_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _Terminal("main", is_quiet=True).unfinished(Kept(tmp_path / "one", PLAN))
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.endswith("go on with: opprof ab main --resume=one\n")
