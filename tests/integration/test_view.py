"""``opprof view``: the traces that it shows, and that a page can fetch them."""

import gzip
import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from support.documents.strategies import simple_run, simple_test
from support.html.perfetto import browser, served, wheel_ui

from pytest_opprof.baselines.traces import SavedTraces
from pytest_opprof.cli.main import main
from pytest_opprof.compare.document import write_comparison
from pytest_opprof.compare.sessions import compare_runs
from pytest_opprof.results.files import write_run
from pytest_opprof.results.names import trace_stem

X, Y, Z = "t.py::test_x", "u.py::test_y[a/b]", "u.py::test_op[aten::add]"
# The files of each kind, and the one op in each.
FILES = {
    f"{trace_stem(X)}.base.json.gz": "base of x",
    f"{trace_stem(X)}.head.json.gz": "head of x",
    f"{trace_stem(X)}.json.gz": "asked for of x",
    f"{trace_stem(Y)}.cycle0.json.gz": "cycle of y",
    f"{trace_stem('v.py::test_x')}.json.gz": "of another x",
    f"{trace_stem(Z)}.json.gz": "op of z",
    f"{trace_stem('u.py::test_op[prims::add]')}.json.gz": "another op of z",
    "notes.txt": "no trace",
}
Shown = Callable[..., set[str]]


def packed(op: str) -> bytes:
    event = {"ph": "X", "cat": "cpu_op", "name": op, "pid": 1, "tid": 1, "ts": 0, "dur": 5}
    return gzip.compress(json.dumps({"traceEvents": [event]}).encode())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with traces and documents, where commands are started."""
    monkeypatch.chdir(tmp_path)
    traces = tmp_path / ".opprof" / "traces"
    traces.mkdir(parents=True)
    for name, op in FILES.items():
        (traces / name).write_bytes(packed(op))
    run = simple_run(simple_test({"aten::mul": 1}, node_id=X), simple_test({"aten::mul": 1}, node_id=Y))
    write_run(tmp_path / "run.json", run)
    saved = simple_run(simple_test({"aten::mul": 1}, node_id=Y), run_id="saved")
    write_run(tmp_path / "saved.json", saved)
    (tmp_path / "staged").write_bytes(packed("saved of y"))
    SavedTraces(folder=traces, budget=10_000).keep({Y: tmp_path / "staged"}, saved)
    compared = compare_runs(run, run, created=datetime(2026, 1, 3, tzinfo=UTC), opprof_version="0.1.0")
    write_comparison(tmp_path / "compared.json", compared)
    return tmp_path


@pytest.fixture
def shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Shown:
    """Run the command, and return the ops of the trace that the opened page fetched."""

    def show(*arguments: str) -> set[str]:
        fetched: list[bytes] = []

        def opens(url: str) -> bool:
            (trace,) = parse_qs(urlsplit(url.replace("#!/", "")).query)["url"]
            with urllib.request.urlopen(trace, timeout=30) as answer:  # noqa: S310 - of this test's own server
                fetched.append(answer.read())
            return True

        monkeypatch.setattr("webbrowser.open", opens)
        assert main(["view", *arguments, "--port=0"]) == 0
        (data,) = fetched
        plain = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        trace: Any = json.loads(plain)
        return {event["name"] for event in trace["traceEvents"] if "cpu_op" in event.get("cat", "")}

    assert folder.is_dir()
    return show


def test_regressed_test_shows_base_and_head(shown: Shown) -> None:
    assert shown(X) == {"base of x [gone]", "head of x [new]"}


@pytest.mark.parametrize(
    ("arguments", "ops"),
    [
        ([X, "--side=base"], {"base of x"}),
        ([X, "--side=head"], {"head of x"}),
        (["test_y[a/b]"], {"cycle of y"}),
        ([trace_stem(Y)], {"cycle of y"}),
        (["v.py::test_x"], {"of another x"}),
        (["test_y"], {"cycle of y"}),
        (["_y[a"], {"cycle of y"}),
        (["test_op[aten::add]"], {"op of z"}),
        ([Z], {"op of z"}),
        (["test_y[a/b]", "--side=head"], {"cycle of y"}),
        (["run.json", "--test=test_x", "--side=base"], {"base of x"}),
        (["run.json", "--test=test_y"], {"cycle of y"}),
        (["compared.json", "--test=y[a"], {"cycle of y"}),
        (["saved.json", "--test=test_y"], {"saved of y"}),
        ([f".opprof/traces/{trace_stem(Y)}.cycle0.json.gz"], {"cycle of y"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_named_trace_is_shown(shown: Shown, arguments: list[str], ops: set[str]) -> None:
    assert shown(*arguments) == ops


def test_a_long_node_id_is_shown(shown: Shown, folder: Path) -> None:
    long = f"t.py::test_z[{'z' * 300}]"
    (folder / ".opprof" / "traces" / f"{trace_stem(long)}.json.gz").write_bytes(packed("of z"))
    assert shown(long) == {"of z"}


def test_traces_may_lie_elsewhere(shown: Shown, folder: Path) -> None:
    (folder / ".opprof" / "traces").rename(folder / "artifact")
    assert shown("test_y[a/b]", "--traces=artifact") == {"cycle of y"}


@pytest.mark.usefixtures("folder")
def test_the_tests_that_have_traces_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed[-1] == "5 tests have traces in .opprof/traces: opprof view TEST"
    assert f"{trace_stem(X)}: base, head" in listed
    assert main(["view", "run.json"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{X}: base, head",
        f"{Y}: head",
        "2 tests have traces in .opprof/traces: opprof view run.json --test TEST",
    ]
    Path("run.json").rename("a run.json")
    assert main(["view", "a run.json", "--traces=.opprof/traces"]) == 0
    assert (
        capsys.readouterr()
        .out.splitlines()[-1]
        .endswith(": opprof view --traces=.opprof/traces 'a run.json' --test TEST")
    )
    assert main(["view", "--traces=missing"]) == 0
    assert capsys.readouterr().out == "no tests have traces in missing\n"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["test_z"], 2, "no test 'test_z' with a trace in .opprof/traces (there are: "),
        (["test_x"], 2, "'test_x' names several tests with traces: "),
        (["run.json", "--test=test"], 2, "'test' names several tests with traces: t.py::test_x, u.py"),
        (["test_y[a/b]", "--side=base"], 2, "there is no trace of the base, only of the head"),
        ([".opprof/traces/notes.txt"], 2, "notes.txt: this is not a trace, a run or a comparison"),
        ([X, "--ui=perfetto"], 2, "perfetto: no page"),
    ],
    ids=["unknown", "ambiguous", "ambiguous in a run", "no such side", "no trace", "no page"],
)
def test_unshowable_trace_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, told: str
) -> None:
    (folder / ".opprof" / "traces" / "notes.txt").write_text("no trace", encoding="utf-8")
    assert main(["view", *arguments]) == code
    assert told in capsys.readouterr().err


@pytest.mark.slow
def test_perfetto_reads_the_served_trace(folder: Path) -> None:
    """The command's page in a real browser: it fetches the trace and shows both sides."""
    trace = folder / ".opprof" / "traces" / f"{trace_stem(X)}.base.json.gz"
    with served(wheel_ui(), trace) as ui, browser() as page:
        command = [sys.executable, "-m", "pytest_opprof.cli.main", "view", X, "--no-browser", f"--ui={ui}"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            marked, link = process.stdout.readline(), process.stdout.readline().strip()
            assert marked == "base and head side by side, marked ops: 2\n"
            assert unquote(link).startswith(f"{ui}/#!/?url=http://127.0.0.1:9001/")
            page.open_page(link.replace("/#!", "/index.html#!"))
            page.wait_for_trace()
            names = page.query("select name from slice where category glob 'cpu_op*' order by 1", "name")
            assert process.wait(30) == 0
    assert names == [["base of x [gone]"], ["head of x [new]"]]
