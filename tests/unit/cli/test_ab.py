"""How `opprof ab` treats its arguments, and its progress on a terminal and elsewhere."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from support.documents.ab_runs import side

from pytest_opprof.cli.ab import _Terminal
from pytest_opprof.cli.main import main
from pytest_opprof.compare.timing.comparison import TimeComparison
from pytest_opprof.compare.timing.judge import compare_times
from pytest_opprof.errors import ExperimentError
from pytest_opprof.experiment.ab import Watcher
from pytest_opprof.experiment.experiment_store import Kept, Plan
from pytest_opprof.experiment.progress import Progress
from pytest_opprof.experiment.request import Request

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
    """Progress of N of four processes."""
    return Progress(done=done, total=4, elapsed_s=done)


def test_terminal_redraws_one_progress_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    terminal = _Terminal(["ab", "main"], is_quiet=False)
    for done in (0, 2, 4):
        terminal.progress(progress(done))
    terminal.tell("a process died")
    clear = "\r\x1b[K"
    first, second = f"[{'.' * 22}] 0/4 processes", f"[{'#' * 11}{'.' * 11}] 2/4 processes"
    drawn = capsys.readouterr().out.split(clear)
    assert [text.rstrip()[: len(first)] for text in drawn] == ["", first, second, "", "a process died"]
    assert all(len(text) < 40 for text in drawn), "a line that is too long could not be taken back"


def test_plain_output_has_a_line_per_process_unless_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    for is_quiet in (False, True):
        terminal = _Terminal(["ab", "main"], is_quiet=is_quiet)
        terminal.tell("begins")
        for done in (0, 1, 2):
            terminal.progress(progress(done))
    assert capsys.readouterr().out.splitlines() == [
        "begins",
        "1/4 processes · 00:01 elapsed",
        "2/4 processes · 00:02 elapsed",
    ]


@pytest.mark.parametrize("resumed", [["--resume"], ["--resume=one"], ["--resume", "one"], []])
def test_an_early_end_prints_the_whole_command_to_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, resumed: list[str]
) -> None:
    def cut_short(request: Request, *, watcher: Watcher, **_: object) -> NoReturn:
        watcher.unfinished(Kept(tmp_path / "one", PLAN))
        raise KeyboardInterrupt

    monkeypatch.setattr("pytest_opprof.experiment.ab.run_ab", cut_short)
    options = ["--min-effect=1%", "--timeout=60", "-o", "ab.json", "-k", "a or b"]
    main(["ab", "main", *resumed, *options, "--", "tests"])
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines()[0].endswith(
        "resume with: opprof ab --resume=one main --min-effect=1% --timeout=60 -o ab.json -k 'a or b' -- tests"
    )


def test_pytest_arguments_keep_their_order(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Request] = []

    def refused(request: Request, **_: object) -> NoReturn:
        asked.append(request)
        raise ExperimentError("no")

    monkeypatch.setattr("pytest_opprof.experiment.ab.run_ab", refused)
    given = ["-k", "step", "tests/a.py", "-x", "--steps=3", "-p", "no:doctest", "-q", "--own=1", "b.py"]
    assert main(["ab", "main", *given]) == 9
    assert capsys.readouterr().err == "opprof: no\n"
    assert asked[0].steps == 3
    assert asked[0].arguments == (
        *("-k", "step", "tests/a.py", "-x"),
        *("-p", "no:doctest", "--own=1", "b.py"),
    )


def test_unwritable_file_is_refused_before_measuring(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pytest_opprof.experiment.ab.run_ab", lambda *_, **__: pytest.fail("it measures"))
    assert main(["ab", "main", "-o", str(tmp_path)]) == 5
    assert f"{tmp_path} cannot be written: it is a folder" in capsys.readouterr().err


def test_result_that_became_unwritable_is_still_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer, output = compare_times(side([1_000]), side([1_000])), tmp_path / "ab.json"

    def measured(*_: object, deliver: Callable[[TimeComparison], object], **__: object) -> NoReturn:
        output.mkdir()
        deliver(answer)
        pytest.fail("the experiment would be finished")

    monkeypatch.setattr("pytest_opprof.experiment.ab.run_ab", measured)
    assert main(["ab", "main", "-q", "-o", str(output)]) == 5
    told = capsys.readouterr()
    assert told.out.startswith("1 inconclusive")
    assert str(output) in told.err
