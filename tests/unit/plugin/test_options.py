"""The options and their ini keys, read by a real configuration."""

from pathlib import Path

import pytest

from pytest_opprof.capture.sources import SOURCES
from pytest_opprof.plugin.option_table import CAPTURE
from pytest_opprof.plugin.options import read_options


def test_options_have_defaults(lone: pytest.Pytester) -> None:
    options = read_options(lone.parseconfig())
    assert (options.mode, options.store, options.rows) == ("on", "dir:.opprof", 10)
    assert options.capture == {"ranges", "ops", "cuda-if-used"}
    assert (options.save_processes, options.trace_budget) == (2, "64 MiB")
    assert (options.save, options.baseline, options.json, options.traces, options.columns) == (None,) * 5
    assert not options.asks_for_something


@pytest.mark.parametrize(
    ("argument", "complaint"),
    [
        ("--opprof=sometimes", "--opprof=sometimes: it must be one of on, off, only"),
        (
            "--opprof-capture=ops,everything",
            "unknown source 'everything'; known: ranges, ops, cuda-if-used, cuda",
        ),
        ("--opprof-rows=all", "--opprof-rows=all: it must be a whole number"),
        ("--opprof-rows=-2", "--opprof-rows=-2: it must be a number from -1 to 1000000"),
        ("--opprof-save-processes=0", "--opprof-save-processes=0: it must be a number from 1 to 100"),
        ("--opprof-save-processes=101", "--opprof-save-processes=101: it must be a number from 1 to 100"),
        ("--opprof-save-processes=two", "--opprof-save-processes=two: it must be a whole number"),
        ("--opprof-timed-steps=some", "--opprof-timed-steps=some: it must be a whole number"),
        ("--opprof-timed-steps=-1", "--opprof-timed-steps=-1: it must be a number from 0 to 1000"),
        ("--opprof-report=markdown", "--opprof-report=markdown: write it as FORMAT:PATH"),
        ("--opprof-report=:a.md", "--opprof-report=:a.md: write it as FORMAT:PATH"),
        (
            "--opprof-timed-max-time=some",
            "--opprof-timed-max-time=some: it must be a number of seconds from 0",
        ),
        (
            "--opprof-timed-max-time=-1",
            "--opprof-timed-max-time=-1: it must be a number of seconds from 0 to 3600",
        ),
        ("--opprof-timed-steps=1001", "--opprof-timed-steps=1001: it must be a number from 0 to 1000"),
    ],
)
def test_invalid_value_is_refused(lone: pytest.Pytester, argument: str, complaint: str) -> None:
    config = lone.parseconfig(argument)
    with pytest.raises(pytest.UsageError, match=complaint.replace("(", r"\(")):
        read_options(config)


def test_the_command_line_stands_over_the_ini_file(lone: pytest.Pytester) -> None:
    keys = "opprof = only\nopprof_save = main\nopprof_rows = 3\nopprof_save_processes = 4\nopprof_columns = Name, Self CPU\n"
    lone.makeini(
        f"[pytest]\naddopts = -p opprof\n{keys}opprof_gate =\n  ops.count = off\n  ranges.count = 1%\n"
    )
    by_ini = read_options(lone.parseconfig())
    assert (by_ini.mode, by_ini.save, by_ini.rows, by_ini.columns) == (
        "only",
        "main",
        3,
        ("Name", "Self CPU"),
    )
    assert by_ini.save_processes == 4
    assert (by_ini.ini_gates, by_ini.gates) == (("ops.count = off", "ranges.count = 1%"), ())
    arguments = ("--opprof=on", "--opprof-save=", "--opprof-rows=-1", "--opprof-gate=ops.count=exact")
    options = read_options(lone.parseconfig(*arguments))
    assert (options.mode, options.save, options.rows) == ("on", None, -1)
    assert options.gates == ("ops.count=exact",)
    assert options.ini_gates == by_ini.ini_gates


def test_paths_are_relative_to_their_source(lone: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    lone.makeini("[pytest]\naddopts = -p opprof\nopprof_traces = traces\n")
    below = lone.mkdir("below")
    monkeypatch.chdir(below)
    options = read_options(lone.parseconfig("--opprof-json=run.json", "-c", "../tox.ini"))
    assert options.json == below / "run.json"
    assert options.traces == Path(lone.path) / "traces"


def test_command_line_reports_replace_those_of_the_ini_file(
    lone: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    lone.makeini("[pytest]\naddopts = -p opprof\nopprof_report =\n  junit:a/{rank}.xml\n  annotations:-\n")
    monkeypatch.setenv("RANK", "3")
    below = lone.mkdir("below")
    monkeypatch.chdir(below)

    def wanted(*arguments: str) -> list[tuple[str, Path]]:
        options = read_options(lone.parseconfig(*arguments, "-c", "../tox.ini"))
        assert options.asks_for_something == bool(options.reports)
        return [(report.kind, report.path) for report in options.reports]

    assert wanted() == [("junit", Path(lone.path) / "a" / "3.xml"), ("annotations", Path("-"))]
    assert wanted("--opprof-report=json:c.json", "--opprof-report=html:x:y") == [
        ("json", below / "c.json"),
        ("html", below / "x:y"),
    ]
    assert wanted("--opprof-report=") == []


def test_every_source_that_a_session_may_ask_for_is_one() -> None:
    assert set(CAPTURE) <= SOURCES
