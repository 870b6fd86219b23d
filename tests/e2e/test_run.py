"""``opprof run``: programs behave as under plain Python, and their work is reported."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_opprof.results.files import read_run
from pytest_opprof.results.run import Outcome

FIBONACCI = """\
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

print(fibonacci(9))
"""
# Programs that print everything about how they were started, or end in every possible way.
PROGRAMS = {
    "names": "import sys; print(sys.argv, sys.path[0], sorted({*globals()} - {'sys', '__annotations__'}))\n"
    "print(__name__, __file__, __spec__ and __spec__.name, __package__, __builtins__)",
    "main module": "import sys; value = 3; print(sys.modules['__main__'].value)",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))))",
    "spawned": "import multiprocessing as m\ndef f(x): return x + 1\n"
    "if __name__ == '__main__':\n    with m.get_context('spawn').Pool(1) as p: print(p.map(f, [1, 2]))",
    "encoding": "# coding: latin-1\nprint(ascii('\xe9'))",
    "sibling": "import sibling; print(sibling.NAME)",
    "error": "def f():\n    1 / 0\n\nf()",
    "raised from": "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('no') from e",
    "own hook": "import sys; sys.excepthook = lambda *told: print('told', told[0]); 1 / 0",
    "broken pipe": "raise BrokenPipeError('mine')",
    "error of ours": "from pytest_opprof.errors import UsageError; raise UsageError('mine')",
    "syntax": "x = = 1\n",
    "exit": "import sys; sys.exit()",
    "exit 3": "import sys; sys.exit(3)",
    "exit true": "raise SystemExit(True)",
    "exit text": "import sys; sys.exit('enough')",
    "at exit": "import atexit, os; atexit.register(lambda: print('end', flush=True))",
    "no future": "def f(x: undefined) -> None: ...",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module and a package that can be run."""
    (tmp_path / "sibling.py").write_text("NAME = 'sibling'\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("import sys; print(sys.argv)\n")
    (tmp_path / "package" / "__main__.py").write_text(PROGRAMS["names"])
    (tmp_path / "fib.py").write_text(FIBONACCI)
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "160", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def opprof(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "-m", "pytest_opprof", "run", *arguments)


def rows(told: str) -> dict[str, str]:
    """The rows of the table: number of calls by name."""
    lines = re.split(r"\n-[- ]+\n", told)[2].splitlines()
    return {cells[0]: cells[-1] for line in lines if (cells := re.split(r"  +", line.strip()))}


def without_table(told: str) -> str:
    """The output without the line that says how much was recorded and the table after it."""
    before, _, after = re.sub(r"(?m)^\S+: [\d,]+ events, .*\n", "\0", told).partition("\0")
    return before + after.partition("Self CPU time total")[2].partition("\n")[2]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_script_behaves_as_under_python(folder: Path, program: str) -> None:
    (folder / "code").mkdir()
    (folder / "code" / "sibling.py").write_text("NAME = 'beside the script'\n")
    (folder / "code" / "it.py").write_bytes(PROGRAMS[program].encode("latin-1"))
    typed = ("code/it.py", "one", "--rows", "--", "-o", "-m")
    plain, ours = run(folder, *typed), opprof(folder, *typed)
    assert (ours.returncode, ours.stderr) == (plain.returncode, plain.stderr)
    assert without_table(ours.stdout) == plain.stdout


@pytest.mark.slow
@pytest.mark.parametrize("module", ["package", "package.__main__", "sibling", "json.tool"])
def test_a_module_behaves_as_under_python(folder: Path, module: str) -> None:
    typed = ("-m", module, "--help", "--rows")
    plain, ours = run(folder, *typed), opprof(folder, *typed)
    assert (ours.returncode, ours.stderr) == (plain.returncode, plain.stderr)
    assert without_table(ours.stdout) == plain.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ([], "opprof run needs a script, or -m and a module"),
        (["missing.py"], "missing.py cannot be run: No such file or directory"),
        (["package"], "package cannot be run: Is a directory"),
        (["-m", "missing"], "missing cannot be run: there is no such module"),
        (["-m", "missing.below"], "missing.below cannot be run: No module named 'missing'"),
        (["-m", "sys"], "sys cannot be run: there is no such module, or it has no Python code"),
        (["--sort=nothing", "fib.py"], "a table cannot be sorted by 'nothing'"),
        (["--sampling=2", "fib.py"], "--sampling"),
        (["--unknown", "fib.py"], "unrecognized arguments: --unknown"),
    ],
)
def test_unrunnable_program_is_one_sentence(folder: Path, typed: list[str], told: str) -> None:
    done = opprof(folder, *typed)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_nothing_but_the_program_is_in_the_table(folder: Path) -> None:
    (folder / "it.py").write_text("def f():\n    return sum(range(10))\n\nf()\n")
    found = rows(opprof(folder, "it.py").stdout)
    assert found == {"it.py: <module>": "1", "it.py: f": "1", "<built-in function sum>": "1"}


def test_missing_baseline_is_reported_before_the_program_runs(folder: Path) -> None:
    done = opprof(folder, "--compare=main", "fib.py")
    assert (done.returncode, done.stdout) == (6, "")
    assert "main: there is no such file, and no baseline 'main'" in done.stderr


def test_table_shows_functions(folder: Path) -> None:
    done = opprof(folder, "--rows=3", "fib.py")
    assert rows(done.stdout)["fib.py: fibonacci"] == "109"
    assert len(rows(done.stdout)) == 3
    assert rows(opprof(folder, "--sort=count", "--rows=1", "fib.py").stdout) == {"fib.py: fibonacci": "109"}
    assert "<built-in function exec>" not in opprof(folder, "--rows=-1", "fib.py").stdout


# Modules that a script without torch does not need, and those that only other options need.
NOT_IMPORTED = {
    *("torch", "numpy", "pytest", "jsonschema_rs"),
    *("importlib.metadata", "email.message", "html", "fractions", "socket", "zipfile"),
    *("pytest_opprof.analysis", "pytest_opprof.baselines", "pytest_opprof.compare", "pytest_opprof.results"),
    *("pytest_opprof.capture.observer_build", "pytest_opprof.capture.torch_build"),
}


def test_script_waits_for_no_unneeded_import(folder: Path) -> None:
    """Of the whole command, the table and all: each script pays for its start."""
    (folder / "asks.py").write_text(
        "import atexit, sys\natexit.register(lambda: print('loaded:', *sys.modules, sep='\\n'))\n"
    )
    plain = set(run(folder, "asks.py").stdout.splitlines())
    loaded = set(opprof(folder, "asks.py").stdout.partition("loaded:")[2].splitlines()) - plain
    assert "pytest_opprof.events.key_averages" in loaded
    assert loaded & NOT_IMPORTED == set()


def test_table_shows_ranges_without_stacks(folder: Path) -> None:
    (folder / "ranged.py").write_text(
        "from pytest_opprof import record_function\n"
        "for _ in range(3):\n    with record_function('load'): sorted([2, 1])\n"
    )
    assert rows(opprof(folder, "--no-stack", "ranged.py").stdout) == {"load": "3"}


def test_interrupted_program_still_gets_its_table(folder: Path) -> None:
    (folder / "waits.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    done = opprof(folder, "waits.py")
    assert done.returncode == 128 + signal.SIGINT
    assert rows(done.stdout)["waits.py: <module>"] == "1"
    assert done.stderr == run(folder, "waits.py").stderr
    assert done.stderr.endswith("KeyboardInterrupt\n")


def test_a_reader_that_goes_away_loses_no_file(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "pytest_opprof", "run", "--trace=t.json", "-o", "run.json", "quiet.py"]
    (folder / "quiet.py").write_text("sorted([2, 1])\n")
    try:
        done = subprocess.run(
            command, cwd=folder, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")
    assert read_run(folder / "run.json").tests[0].node_id == "quiet.py"
    assert json.loads((folder / "t.json").read_text())["traceEvents"]


@pytest.mark.parametrize("lost", ["t.json", "run.json"])
def test_a_file_that_cannot_be_written_loses_nothing_else(folder: Path, lost: str) -> None:
    (folder / "spoils.py").write_text(f"import os; os.mkdir({lost!r})\n")
    (kept,) = {"t.json", "run.json"} - {lost}
    done = opprof(folder, "--trace=t.json", "-o", "run.json", "--", "spoils.py")
    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert f"{lost} cannot be written: it is a folder" in done.stderr
    assert rows(done.stdout)["spoils.py: <module>"] == "1"
    assert f": {kept} " in done.stdout
    assert (folder / kept).is_file()


@pytest.mark.parametrize("option", ["--trace", "--output"])
def test_an_unwritable_file_is_refused_before_the_program_runs(folder: Path, option: str) -> None:
    done = opprof(folder, option, "package", "fib.py")
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("opprof: package cannot be written: it is a folder")


def test_a_child_that_was_forked_prints_no_table(folder: Path) -> None:
    (folder / "forks.py").write_text(
        "import os, sys\nif os.fork() == 0: sys.exit(0)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    )
    done = opprof(folder, "forks.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("0\nforks.py: ")
    assert done.stdout.count("Self CPU time total") == 1


def test_changing_the_folder_does_not_move_outputs(folder: Path) -> None:
    (folder / "leaves.py").write_text("import os, sys\nos.chdir('package')\nsys.stdout.close()\n")
    done = opprof(folder, "--trace=t.json", "-o", "run.json", "leaves.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert "trace: t.json" in done.stdout
    names = {event["name"] for event in json.loads((folder / "t.json").read_text())["traceEvents"]}
    assert "leaves.py(1): <module>" in names
    assert not any("ProfilerStep" in name for name in names)
    (test,) = read_run(folder / "run.json").tests
    assert (test.node_id, test.steps, test.outcome) == ("leaves.py", 1, Outcome.PASSED)
    shown = run(folder, "-m", "pytest_opprof", "show", "run.json")
    assert "<built-in function chdir>" in shown.stdout


def test_a_failing_program_is_kept_and_not_judged(folder: Path) -> None:
    (folder / "fails.py").write_text("raise SystemExit(4)")
    done = opprof(folder, "-o", "run.json", "fails.py")
    assert done.returncode == 4
    assert read_run(folder / "run.json").tests[0].outcome is Outcome.FAILED
    done = opprof(folder, "--compare=run.json", "fails.py")
    assert done.returncode == 4
    assert "nothing measured" in done.stdout


TRAINS = """\
import sys, torch

x = torch.ones(4, 4, requires_grad=True)
for _ in range(2):
    (x @ x).sum().backward()
if "more" in sys.argv:
    x.clone()
"""


@pytest.mark.slow
def test_a_regression_fails(folder: Path) -> None:
    pytest.importorskip("torch")
    (folder / "trains.py").write_text(TRAINS)
    first = opprof(folder, "--no-stack", "-o", "base.json", "trains.py")
    assert (first.returncode, first.stderr) == (0, "")
    assert rows(first.stdout)["aten::mm"] == "6"  # torch was imported while the window was open
    assert opprof(folder, "--no-stack", "--compare=base.json", "trains.py").returncode == 0
    more = opprof(folder, "--no-stack", "--compare=base.json", "trains.py", "more")
    assert more.returncode == 1
    assert "REGRESSED: 3 more ops in each step than" in more.stdout
    assert "aten::clone" in more.stdout
    saved = ("-m", "pytest_opprof", "baseline", "save", "main", "base.json", "--store=dir:kept")
    assert run(folder, *saved).returncode == 0
    named = opprof(folder, "--no-stack", "--compare=main", "--store=dir:kept", "trains.py", "more")
    assert named.returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "mark"),
    [
        (["--shapes"], '"Input Dims"'),
        (["--memory"], '"[memory]"'),
        (["--stack"], '"python_function"'),
        (["--cpp-stack"], '"C++ stack"'),
        (["--sampling=0.5"], '"opprof_sampling": 0.5'),
    ],
)
def test_each_capture_option_is_in_the_trace_of_torch_ops(
    folder: Path, options: list[str], mark: str
) -> None:
    pytest.importorskip("torch")
    (folder / "trains.py").write_text(TRAINS)
    done = opprof(folder, "--no-stack", *options, "--trace=t.json", "trains.py")
    assert done.returncode == 0, done.stderr
    assert mark in (folder / "t.json").read_text()
