"""Each argument of each ``opprof`` command makes a difference: without a proof in support/proofs it fails."""

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.documents.strategies import simple_run, simple_test
from support.proofs.command_line_proofs import (
    ATTACHED,
    OF_AB,
    OF_ACCEPT,
    OF_ALL_COMMANDS,
    OF_ATTACH,
    OF_BISECT,
    OF_COMMENT,
    OF_FLEET,
    OF_MCP,
    OF_PREPARE,
    OF_RECOVER,
    OF_REPLAY,
    OF_RUN,
    OF_VIEW,
    PROOFS,
)

from pytest_opprof.baselines.archive import open_store
from pytest_opprof.cli.main import main, whole_parser
from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.document import write_comparison
from pytest_opprof.compare.last import keep_last
from pytest_opprof.compare.sessions import compare_runs
from pytest_opprof.history.store import history_of, remember
from pytest_opprof.results.files import write_run
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit

LISTENS = """
import torch, pytest_opprof
pytest_opprof.listen()
print("ready", flush=True)
while True:
    torch.ones(16).add(1)
"""


def arguments_of(parser: argparse.ArgumentParser, command: tuple[str, ...] = ()) -> Iterator[str]:
    """All arguments of a parser and its subparsers, by command and longest name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from arguments_of(below, (*command, name))
        elif not isinstance(action, argparse._HelpAction) and action.dest != "version":
            is_switch = isinstance(action, argparse.BooleanOptionalAction)
            names = action.option_strings[:1] if is_switch else action.option_strings
            yield " ".join((*command, (names or [action.dest])[-1]))


def trace_of(ops: int) -> list[dict[str, Any]]:
    """Two steps of N ops of a constant duration, and of another op that is called once."""
    row = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1}
    events: list[dict[str, Any]] = []
    for start in (0, 1000):
        step = {"name": f"ProfilerStep#{start // 1000}", "cat": "user_annotation", "ts": start, "dur": 900}
        events += [row | step, row | {"name": "aten::long", "ts": start + 1, "dur": 300}]
        events += [
            row | {"name": "aten::mul", "ts": start + 400 + 10 * place, "dur": 5} for place in range(ops)
        ]
    return events


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs, stores and traces, where commands start."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    runs = {
        "base": simple_run(simple_test({"aten::mul": 9, "aten::add": 4})),
        "head": simple_run(simple_test({"aten::mul": 10, "aten::add": 4})),
        "two": simple_run(
            simple_test({"aten::mul": 1}, node_id="t.py::test_x"),
            simple_test({"aten::add": 1}, node_id="t.py::test_y"),
        ),
    }
    for name, run in runs.items():
        write_run(tmp_path / f"{name}.json", run)
    for name in ("repository", "bare"):
        subprocess.run(["git", "init", "-q", *["--bare"] * (name == "bare"), tmp_path / name], check=True)
    for store, count in (("dir:.opprof", 4), ("dir:other", 7), ("git:repository", 1)):
        for commit in "01":
            saved = simple_run(simple_test({"aten::mul": count}), commit=Commit(id=commit * 40, dirty=False))
            open_store(store, root=tmp_path).save("main", saved, collected=Collected())
        for number, test in enumerate("xxy" if store.startswith("dir:") else ""):
            remembered = simple_run(
                simple_test({"aten::mul": count + number}, node_id=f"t.py::test_{test}"),
                run_id=f"{store}{number}",
                name="main" if number else "release",
            )
            remember(history_of(store, root=tmp_path), remembered, repository=tmp_path)
    (tmp_path / "collected.txt").write_text("tests/test_a.py::test_z\n", encoding="utf-8")
    rich = simple_run(
        simple_test({"aten::mul": 9, "aten::add": 4}, node_id="t.py::test_x"),
        simple_test({"aten::add": 1}, node_id="t.py::test_y"),
    )
    open_store("dir:.opprof", root=tmp_path).save("rich", rich, collected=Collected())
    for name, ops in (("before", 3), ("after", 5)):
        (tmp_path / f"{name}.json").write_text(json.dumps(trace_of(ops)), encoding="utf-8")
    for name, most in (("stored", 2), ("slower", 3)):
        stats = {"rounds": 2, "min": 1, "max": most, "mean": 1.5}
        benchmarks = [{"fullname": "t.py::test_x", "stats": stats}]
        stored = {"datetime": "2026-01-01T00:00:00", "benchmarks": benchmarks}
        (tmp_path / f"{name}.json").write_text(json.dumps(stored), encoding="utf-8")
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
    ranged = "from pytest_opprof import record_function\n@record_function('work')\ndef test_it(): pass\n"
    (tmp_path / "one" / "test_one.py").write_text(ranged)
    keep_last(tmp_path / ".opprof", risen(to=2))
    write_comparison(tmp_path / "other.json", risen(to=3))
    return tmp_path


def risen(*, to: int) -> Comparison:
    """A comparison in which a watched op and the total of two tests rose."""
    before, after = (
        simple_run(*(simple_test({"aten::item": many}, node_id=f"t.py::test_{name}") for name in "xy"))
        for many in (1, to)
    )
    return compare_runs(before, after, created=datetime(2026, 1, 3, tzinfo=UTC), opprof_version="0.1.0")


def outcome(typed: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[object, ...]:
    """The exit code, the output and the files afterwards, without varying parts."""
    code = main([word.replace("&", " ") for word in typed.split()])
    told = capsys.readouterr().out
    files = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    runs = [json.loads(path.read_text()).get("tests") for path in folder.glob("run*.json")]
    return code, told, files, str(runs)


@pytest.mark.slow
@pytest.mark.parametrize("argument", PROOFS)
def test_every_argument_makes_a_difference(
    argument: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without, with_it = PROOFS[argument]
    if not argument.startswith("init"):  # which leaves a file behind
        outcome(without, folder, capsys)
        assert outcome(without, folder, capsys) == outcome(without, folder, capsys)
    assert outcome(without, folder, capsys) != outcome(with_it, folder, capsys)


@pytest.fixture
def listening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The pid of a process that runs ops and can be attached to."""
    pytest.importorskip("torch")
    monkeypatch.setenv("OPPROF_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with subprocess.Popen([sys.executable, "-c", LISTENS], env=os.environ, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            yield child.pid
        finally:
            child.kill()


def attached(*words: str) -> str:
    assert main(["attach", *words, "-o", "trace.json"]) == 0
    return Path("trace.json").read_text(encoding="utf-8")


@pytest.mark.slow
def test_arguments_of_attach_are_in_its_trace(listening: int) -> None:
    plain = attached(str(listening), "--seconds", "0.05")
    for argument, mark in ATTACHED.items():
        option = argument.split()[1]
        value = ["0.5"] if option == "--sampling" else []
        assert mark not in plain, argument
        assert mark in attached(str(listening), "--seconds", "0.05", option, *value), argument


def test_attach_records_its_process_for_a_while(listening: int, capsys: pytest.CaptureFixture[str]) -> None:
    for seconds in ("0.05", "0.1"):
        assert main(["attach", str(listening), "--seconds", seconds]) == 0
        assert f"recording process {listening} for {seconds} s" in capsys.readouterr().out
    assert gzip.decompress(Path(f"opprof-{listening}.json.gz").read_bytes())
    assert main(["attach", str(listening), "--seconds", "0.05", "-o", "named.json"]) == 0
    assert Path("named.json").exists()
    assert main(["attach", str(os.getpid())]) != 0  # which does not listen


def test_every_proof_of_ab_gives_its_argument() -> None:
    for argument, (file, name) in OF_AB.items():
        text = (Path(__file__).parent.parent / "e2e" / "ab" / f"test_{file}.py").read_text(encoding="utf-8")
        body = text.partition(f"def test_{name}(")[2].partition("\ndef ")[0]
        option = (
            argument.split()[1].replace("--output", "-o").replace("--verbose", "-v").replace("--quiet", "-q")
        )
        assert body, name
        assert not option.startswith("-") or f'"{option}' in body, argument


def test_every_proof_of_view_is_there() -> None:
    text = (Path(__file__).parent / "test_view.py").read_text(encoding="utf-8")
    for argument, name in OF_VIEW.items():
        option = argument.split()[1]
        assert f"def test_{name}(" in text, argument
        assert not option.startswith("--") or f'"{option}' in text, argument


def test_every_proof_of_comment_is_there() -> None:
    folder = Path(__file__).parent
    job = (folder.parent / "support" / "forges" / "fork_jobs.py").read_text(encoding="utf-8")
    for argument, (file, name) in OF_COMMENT.items():
        text = (folder / file).read_text(encoding="utf-8")
        assert f"def test_{name}(" in text, name
        if "(job: Job)" in text:
            text += job  # which gives the options of all of its comments
        assert argument.split()[1] in text.replace('"-o"', "--output"), argument


def test_arguments_of_prepare_are_tried() -> None:
    proof = "prepared_folder_serves_a_machine_without_a_compiler"
    text = (Path(__file__).parent / "observer_build" / "test_torches.py").read_text(encoding="utf-8")
    _, _, after = text.partition(f"def test_{proof}(")
    for argument in OF_PREPARE:
        assert argument.split()[1] in after.partition("\ndef ")[0], argument


def test_every_option_of_all_commands_is_tried() -> None:
    text = Path(__file__).with_name("test_completion.py").read_text(encoding="utf-8")
    for argument in OF_ALL_COMMANDS:
        assert f'main(["{argument}", shell])' in text, argument


def test_every_option_of_accept_is_given_in_its_tests() -> None:
    text = (Path(__file__).parent.parent / "e2e" / "accept" / "test_causes.py").read_text(encoding="utf-8")
    for argument in OF_ACCEPT:
        assert f'"{argument.split()[1]}"' in text, argument


def test_every_option_of_run_is_given_in_its_tests() -> None:
    text = (Path(__file__).parent.parent / "e2e" / "test_run.py").read_text(encoding="utf-8")
    short = {"--output": '"-o"', "--module": '"-m"'}
    for argument in OF_RUN - {"run program"}:
        option = argument.split()[1]
        assert short.get(option, f'"{option}') in text, argument


def test_arguments_of_mcp_are_given_to_a_server() -> None:
    text = (Path(__file__).parent.parent / "e2e" / "test_mcp.py").read_text(encoding="utf-8")
    body = text.partition("def test_folder_and_store_can_be_named(")[2].partition("\ndef ")[0]
    assert 'agent_in(elsewhere, str(copied.folder), "--store=' in body


def test_every_option_of_fleet_is_given_in_its_tests() -> None:
    text = Path(__file__).with_name("test_fleet.py").read_text(encoding="utf-8").replace('"-o"', '"--output"')
    for argument in OF_FLEET:
        _, action, option = argument.split()
        assert f'"fleet", "{action}"' in text, argument
        assert not option.startswith("--") or f'"{option}"' in text, argument


def test_every_argument_has_its_proof() -> None:
    known = (
        PROOFS.keys()
        | ATTACHED.keys()
        | OF_ATTACH
        | OF_BISECT
        | OF_RECOVER
        | OF_RUN
        | OF_ACCEPT
        | OF_PREPARE
        | OF_ALL_COMMANDS
        | OF_REPLAY
        | OF_AB.keys()
        | OF_VIEW.keys()
        | OF_COMMENT.keys()
        | OF_MCP
        | OF_FLEET
    )
    assert set(arguments_of(whole_parser())) == known
