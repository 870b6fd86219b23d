"""Whole commands of ``opprof``, in their own processes."""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.documents.compared import slower
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.baselines.archive import open_store
from pytest_opprof.capture.injection import library_path
from pytest_opprof.cli.main import COMMANDS, GROUPS, main, whole_parser
from pytest_opprof.compare.document import read_comparison
from pytest_opprof.compare.last import keep_last
from pytest_opprof.compare.timing.document import write_time_comparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.report.ab import ab_lines
from pytest_opprof.results.files import write_run
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit, Run

WIDTH = 78  # of help in a terminal of 80 columns
MAIN = Commit(id="1a2b3c4" + "0" * 33, dirty=False)


def run_of(count: int, **others: Any) -> Run:
    return simple_run(simple_test({"aten::mul": count}), **others)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two runs and a store, where commands start."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    write_run(tmp_path / "base.json", run_of(4))
    write_run(tmp_path / "head.json.gz", run_of(5))
    open_store("dir:.opprof", root=tmp_path).save("main", run_of(4, commit=MAIN), collected=Collected())
    return tmp_path


def opprof(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest_opprof.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)


def test_compare_fails_on_a_regression(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "main", "head.json.gz", "-o", "c.json"]) == 1
    told = capsys.readouterr().out
    assert "REGRESSED: 1 more op in each step than main@1a2b3c4" in told
    command = "opprof accept --comparison c.json tests/test_a.py::test_x"
    assert f'intended? {command} --reason "..."' in told
    assert told.splitlines()[-1] == "1 regressed · nothing dropped"
    assert read_comparison(Path("c.json")).tests[0].verdict is Verdict.REGRESSED
    main(["compare", "main", "head.json.gz"])
    assert "intended? record it: pytest --opprof-save=main" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["main@1a2b3c4", "base.json"], 0),
        (["head.json.gz", "main"], 0),
        (["base.json", "head.json.gz", "--fail-on=none"], 0),
        (["base.json", "head.json.gz", "--gate=ops.count=off"], 0),
        (["base.json", "head.json.gz", "-q"], 1),
        (["base.json", "head.json.gz", "--fail-on=regresed"], 2),
        (["base.json", "head.json.gz", "--gate=ops.count"], 2),
        (["base.json", "nothing"], 6),
        (["base.json", "c.txt"], 4),
        (["base.json", "head.json.gz", "-o", "/dev/null/x"], 5),
    ],
)
def test_exit_codes_distinguish_outcomes(project: Path, arguments: list[str], code: int) -> None:
    Path("c.txt").write_text("no JSON")
    assert main(["compare", *arguments]) == code


def test_show_prints_tables(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "main", "--columns=Self CPU,# of Calls"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "main@1a2b3c4: measured 2026-01-02 00:00 UTC, 1 of 1 tests"
    assert told[2] == "tests/test_a.py::test_x (3 steps)"
    assert told[6].split() == ["aten::mul", "12.000us", "12"]


@pytest.mark.parametrize("pattern", ["test_x", "tests/*::test_x"])
def test_show_selects_tests(project: Path, capsys: pytest.CaptureFixture[str], pattern: str) -> None:
    assert main(["show", "base.json", "--test", pattern]) == 0
    assert "aten::mul" in capsys.readouterr().out
    assert main(["show", "base.json", "--test", "nothing like it"]) == 2
    assert "has no test like 'nothing like it' (1 test)" in capsys.readouterr().err


def test_show_prints_comparisons(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["compare", "base.json", "head.json.gz", "-o", "c.json"])
    compared = capsys.readouterr().out
    assert main(["show", "c.json"]) == 0
    assert capsys.readouterr().out == compared


def test_show_prints_an_ab_as_ab_does(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = slower()
    write_time_comparison(Path("ab.json"), found)
    assert main(["show", "ab.json"]) == 0
    told = capsys.readouterr().out
    assert told.splitlines() == [line.text for line in ab_lines(found, width=100)]
    assert "REGRESSED" in told
    assert main(["show", "ab.json", "--test", found.tests[0].node_id]) == 0
    assert set(capsys.readouterr().out.splitlines()) < set(told.splitlines())
    assert main(["show", "ab.json", "--test", "nothing like it"]) == 2


def test_show_prints_the_last_comparison(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show"]) == 2
    assert "nothing was compared here yet" in capsys.readouterr().err
    main(["compare", "base.json", "head.json.gz", "-o", "c.json"])
    keep_last(Path(".opprof"), read_comparison(Path("c.json")))
    compared = capsys.readouterr().out.replace(" --comparison c.json", "")
    assert main(["show"]) == 0
    assert capsys.readouterr().out == compared
    assert main(["show", "--test", "test_x"]) == 0
    section = capsys.readouterr().out
    assert section.startswith("opprof: tests/test_a.py::test_x\nREGRESSED")
    assert section in compared
    assert main(["show", "--test", "test_z"]) == 2
    assert "the last comparison has no test like 'test_z' (1 test)" in capsys.readouterr().err


def test_drawn_history_needs_an_html_page(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--base=main", "--head=head.json.gz", "--history"]) == 2
    assert "--history is drawn on a page, with --format html" in capsys.readouterr().err
    assert main(["report", "--base=main", "--head=head.json.gz", "--history", "--format=html"]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")


def test_validate_looks_at_every_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(Path("base.json").read_text())
    document["tests"][0]["ops"][0]["metrics"]["count"] = -2
    Path("bad.json").write_text(json.dumps(document))
    assert main(["validate", "bad.json", "base.json", "head.json.gz"]) == 4
    told = capsys.readouterr()
    assert told.out == "base.json: ok (run, 1 test)\nhead.json.gz: ok (run, 1 test)\n"
    assert told.err == (
        "opprof: bad.json: tests[0].ops[0].metrics.count: -2 is less than 0 (run.schema.json). "
        "The file was not used\n"
    )


def test_init_is_safe_to_repeat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.pyc")
    assert main(["init", str(tmp_path)]) == 0
    first = {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()}
    assert first == {
        ".gitignore": "*.pyc\n/.opprof/*/\n/.opprof/.lock\n",
        "pytest.ini": "[pytest]\nopprof_store = dir:.opprof\n"
        "opprof_fail_on = regressed,missing,inconclusive,error,no-baseline\n",
    }
    assert "pytest --opprof-baseline=main" in capsys.readouterr().out
    assert main(["init", str(tmp_path)]) == 0
    assert {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()} == first


def test_init_refuses_a_folder_inside_a_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "tests").mkdir()
    assert main(["init", str(tmp_path / "tests")]) == 2
    told = f"its project is configured in {tmp_path}/pytest.ini. To set that up: opprof init {tmp_path}\n"
    assert capsys.readouterr().err == f"opprof: {tmp_path}/tests: {told}"
    assert not list((tmp_path / "tests").iterdir())
    assert main(["init", str(tmp_path / "test")]) == 2
    assert "test: no such folder" in capsys.readouterr().err
    assert not (tmp_path / "test").exists()


def test_init_refuses_another_store_than_the_configured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path), "--store=counts:ci"]) == 0
    assert main(["init", str(tmp_path), "--store=counts:ci"]) == 0
    assert "nothing to ignore for counts:ci" in capsys.readouterr().out
    assert main(["init", str(tmp_path)]) == 0
    assert "nothing to ignore for counts:ci" in capsys.readouterr().out
    assert main(["init", str(tmp_path), "--store=git:"]) == 2
    assert capsys.readouterr().err == (
        f"opprof: --store=git:: opprof_store is counts:ci in {tmp_path}/pytest.ini. Change it there\n"
    )


@pytest.mark.parametrize(
    ("ignored", "store", "told"),
    [
        (".opprof/\n", "dir:.opprof", "ignores .opprof already"),
        ("", "dir:/elsewhere", "/elsewhere: nothing to ignore, because it is outside the project"),
        ("", "dir:../x", "../x: nothing to ignore, because it is outside the project"),
        ("", "git:", "nothing to ignore for git:"),
        ("", "counts:ci", "nothing to ignore for counts:ci"),
    ],
)
def test_init_ignores_only_necessary_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ignored: str, store: str, told: str
) -> None:
    (tmp_path / ".gitignore").write_text(ignored)
    assert main(["init", str(tmp_path), f"--store={store}"]) == 0
    assert told in capsys.readouterr().out
    assert (tmp_path / ".gitignore").read_text() == ignored


def test_env_prints_what_to_export(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env"]) == 0
    both = capsys.readouterr().out.splitlines()
    assert both == [
        f"export {variable}={library_path()}"
        for variable in ("INTEL_LIBITTNOTIFY64", "NVTX_INJECTION64_PATH")
    ]
    assert main(["env", "nvtx"]) == 0
    assert capsys.readouterr().out.splitlines() == both[1:]
    assert main(["env", "ops"]) == 2
    assert "'ops' needs no variable; these do: itt, nvtx" in capsys.readouterr().err


def test_help_lists_every_command() -> None:
    told = opprof("--help")
    assert told.returncode == 0
    assert all(f"    {command}" in told.stdout for command in COMMANDS)
    assert all(f"\n  {title}:\n    {commands[0]} " in told.stdout for title, commands in GROUPS.items())


def commands_of(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Every command, and every action of a command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield command
                yield from commands_of(command)


@pytest.mark.parametrize("command", list(commands_of(whole_parser())), ids=lambda command: command.prog)
def test_help_has_a_sentence_and_an_example_that_parses(command: argparse.ArgumentParser) -> None:
    assert re.match(r"[A-Z].*\.", command.description or "")
    label, _, example = (command.epilog or "").partition(": ")
    assert label == "Example"
    assert len(command.epilog or "") <= WIDTH, "it is folded, and cannot be copied"
    program, *arguments = shlex.split(example)
    assert program == "opprof"
    assert example.startswith(command.prog)
    whole_parser().parse_known_args(arguments)


def test_help_loads_nothing_large() -> None:
    program = (
        "import sys\nfrom pytest_opprof.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "large = {'torch', 'jsonschema_rs', 'cffi', 'numpy', 'pytest', 'mcp', 'pydantic'}\n"
        "print(sorted(large & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines()[-1] == "[]"


def test_closed_pipe_prints_no_traceback(project: Path) -> None:
    write_run(Path("big.json"), simple_run(*(simple_test({"a": 1}, node_id=f"t::{i}") for i in range(500))))
    command = f"{sys.executable} -m pytest_opprof.cli.main show big.json | head -1"
    told = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert told.stdout.startswith("the run of 2026-01-02")
    assert told.stderr == ""


@pytest.mark.parametrize(
    ("redirected", "why"),
    [
        (">/dev/full", "[Errno 28] No space left on device"),
        (">&-", "standard output is closed. To print nothing, send it to /dev/null"),
        (">/dev/null 2>&- <&-", None),
        (">/dev/full 2>&1", None),
    ],
)
@pytest.mark.parametrize("file", ["base.json", "big.json"])
def test_unwritable_output_is_no_failed_gate(
    project: Path, file: str, redirected: str, why: str | None
) -> None:
    write_run(Path("big.json"), simple_run(*(simple_test({"a": 1}, node_id=f"t::{i}") for i in range(500))))
    command = f"{sys.executable} -m pytest_opprof show {file} {redirected}"
    told = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert told.returncode == (0 if "/dev/null" in redirected else 5)
    assert told.stderr == (f"opprof: {why}\n" if why else "")


def test_ascii_terminal_sees_escapes(project: Path) -> None:
    write_run(Path("names.json"), simple_run(simple_test({"日本": 1})))
    told = opprof("show", "names.json", env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(sys.path)})
    assert told.returncode == 0
    assert "\\u65e5\\u672c" in told.stdout


@pytest.mark.parametrize("kind", ["html", "junit", "markdown"])
def test_printed_report_is_the_same_in_every_encoding(project: Path, kind: str) -> None:
    write_run(Path("names.json"), simple_run(simple_test({"日本": 1}, node_id="t.py::test_日本")))
    main(["compare", "names.json", "names.json", "-o", "c.json"])
    main(["report", "c.json", f"--format={kind}", "-o", "report"])
    printed = subprocess.run(
        [sys.executable, "-m", "pytest_opprof", "report", "c.json", f"--format={kind}"],
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert printed.stdout == Path("report").read_bytes()


def test_hostile_error_is_escaped(project: Path) -> None:
    Path("evil.json").write_text('{"kind": "opprof-run", "schema_version": 1, "\\u001b[31m": 1}')
    told = opprof("validate", "evil.json")
    assert told.returncode == 4
    assert "\x1b" not in told.stderr


def test_opprof_alone_prints_its_help() -> None:
    told = opprof()
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == opprof("--help").stdout


@pytest.mark.parametrize(
    ("typed", "suggestion"),
    [("comprae", " (did you mean 'opprof compare'?)"), ("zzz", "")],
    ids=["near", "far"],
)
def test_a_mistyped_command_gets_a_suggestion(typed: str, suggestion: str) -> None:
    told = opprof(typed)
    assert told.returncode == 2
    assert (
        told.stderr == f"opprof: unknown command '{typed}'{suggestion}. To list the commands: opprof --help\n"
    )
