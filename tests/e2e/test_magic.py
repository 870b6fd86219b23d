"""``%%opprof``: notebook cells, run by IPython itself."""

import json
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof.results.files import read_run
from pytest_opprof.results.run import Outcome

LOAD = "%load_ext pytest_opprof\nfrom pytest_opprof import record_function"
# A shell that runs the cells it reads, and reports what each printed, displayed and raised.
SHELL = """\
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell = InteractiveShell.instance(colors="nocolor")
told = []
for cell in json.load(sys.stdin):
    with capture_output() as out:
        done = shell.run_cell(cell, store_history=True)
    error = done.error_before_exec or done.error_in_exec
    shown = [one.data for one in out.outputs]
    told.append([out.stdout + out.stderr, shown, error and f"{type(error).__name__}: {error}"])
json.dump(told, sys.stdout)
"""
RANGED = """\
for _ in range(3):
    with record_function("load"):
        total = sum([1, 2])
"""


@dataclass(frozen=True, slots=True)
class Told:
    """The result of a cell."""

    printed: str
    shown: list[dict[str, Any]]
    error: str | None

    @property
    def rows(self) -> dict[str, str]:
        """The rows of the first table: number of calls by name."""
        lines = re.split(r"\n-[- ]+\n", self.shown[0]["text/plain"])[2].splitlines()
        return {cells[0]: cells[-1] for line in lines if (cells := re.split(r"  +", line.strip()))}


def run_cells(folder: Path, *cells: str) -> list[Told]:
    environment = os.environ | {"IPYTHONDIR": str(folder / "ipython"), "NO_COLOR": "1", "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-c", SHELL],
        input=json.dumps(cells),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return [Told(*one) for one in json.loads(done.stdout)]


def test_a_cell_runs_in_the_users_namespace_and_shows_its_table(tmp_path: Path) -> None:
    load, cell, after = run_cells(
        tmp_path, f"start = 1\n{LOAD}", f"%%opprof\n{RANGED}\nend = start", "print(total, end)"
    )
    assert (load.error, cell.error, after.printed) == (None, None, "3 1\n")
    (shown,) = cell.shown
    assert shown["text/plain"].startswith("cell: ")
    assert shown["text/html"].startswith("<pre>cell: ")
    assert (cell.rows["load"], cell.rows["<built-in function sum>"]) == ("3", "3")
    assert not any("IPython" in name or "opprof" in name for name in cell.rows)


def test_a_line_is_run_as_it_is_typed(tmp_path: Path) -> None:
    line, both = run_cells(
        tmp_path,
        f"{LOAD}\ntext = 'x'\n%opprof --no-stack print('a   b', {{text}}, \"it's\") # -q",
        "%%opprof -q x = 2\ny = x + 1\nprint(x, y)",
    )
    assert (line.printed, line.error) == ("a   b {'x'} it's\n", None)
    assert len(line.shown) == 1
    assert (both.printed, both.shown) == ("2 3\n", [])


def test_rows_are_sorted_and_limited_as_asked(tmp_path: Path) -> None:
    _, sorted_, limited = run_cells(
        tmp_path, LOAD, f"%%opprof -s count\n{RANGED}", f"%%opprof --sort count --rows=2\n{RANGED}"
    )
    counts = [int(count) for count in sorted_.rows.values()]
    assert counts == sorted(counts, reverse=True)
    assert list(limited.rows) == list(sorted_.rows)[:2]


def test_the_profile_is_returned_when_asked_for(tmp_path: Path) -> None:
    _, define, told = run_cells(
        tmp_path,
        LOAD,
        f"def f():\n{textwrap.indent(RANGED, '    ')}",
        "kept = %opprof -r -q --no-stack f()\nnothing = %opprof -q f()\n"
        "print([(row.key, row.count) for row in kept.key_averages()], nothing)",
    )
    assert (define.error, told.shown) == (None, [])
    assert told.printed == "[('load', 3)] None\n"


def test_an_error_shows_as_usual_below_the_table(tmp_path: Path) -> None:
    cell = "%%opprof -o run.json\ndef f():\n    1 / 0\nvalue = 5\nf()"
    _, failed, after = run_cells(tmp_path, LOAD, cell, "print(value)")
    assert failed.error == "ZeroDivisionError: division by zero"
    assert re.search(r"(?s)Cell In\[2\], line 5\n.* 4 value = 5\n----> 5 f\(\)\n", failed.printed)
    assert "cli/magic.py" not in failed.printed
    assert "profiler/program.py" not in failed.printed
    assert any(name.endswith(": f") for name in failed.rows)
    assert after.printed == "5\n"
    assert read_run(tmp_path / "run.json").tests[0].outcome is Outcome.FAILED


def test_unwritable_file_does_not_hide_the_cells_error(tmp_path: Path) -> None:
    taken = "__import__('os').mkdir('run.json')"
    _, refused, failed = run_cells(
        tmp_path, LOAD, "%opprof -o . 1 / 0", f"%opprof -o run.json ({taken}, 1 / 0)"
    )
    assert (refused.error or "").startswith("UsageError: . cannot be written: it is a folder")
    assert failed.error == "ZeroDivisionError: division by zero"
    assert "opprof: run.json cannot be written: it is a folder" in failed.printed


@pytest.mark.slow
def test_torch_ops_are_recorded_as_asked(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    _, cell, told = run_cells(
        tmp_path,
        LOAD,
        "%%opprof --no-stack\nimport torch\nx = torch.ones(2, 3)\ny = x @ x.T",
        "kept = %opprof -r -q --no-stack --shapes x @ x.T\n"
        "print([event.input_shapes for event in kept.events() if event.name == 'aten::mm'])",
    )
    assert cell.rows["aten::mm"] == "1"
    assert told.printed == "[[[2, 3], [3, 2]]]\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "error"),
    [
        ("%%opprof\nx = = 1", "SyntaxError: invalid syntax"),
        ("%opprof", "UsageError: nothing to run: %opprof STATEMENT, or %%opprof over a cell"),
        ("%opprof --sort=nothing print(1)", "UsageError: a table cannot be sorted by 'nothing'"),
        ("%opprof --compare=main print(1)", "UsageError: main: there is no such file, and no baseline"),
        ("%opprof --sampling=2 print(1)", "UsageError: --sampling"),
        ("%opprof --unknown print(1)", "UsageError: unrecognized arguments: --unknown"),
        ("%opprof %opprof print(1)", "UsageError: a profile is being recorded"),
        ("%%opprof\nimport sys; sys.exit(3)", "SystemExit: 3"),
        ("%%opprof\nraise KeyboardInterrupt", "KeyboardInterrupt: "),
    ],
    ids=["syntax", "nothing", "sort", "baseline", "sampling", "unknown", "nested", "exit", "interrupt"],
)
def test_invalid_lines_are_reported(tmp_path: Path, cell: str, error: str) -> None:
    _, told, after = run_cells(tmp_path, LOAD, cell, "%opprof print(2)")
    assert (told.error or "").startswith(error)
    assert "1\n" not in told.printed.splitlines()
    assert after.error is None


def test_files_are_written_where_the_cell_began(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    cell = f'%%opprof -q --trace "a trace.json" -o run.json\nimport os; os.chdir("below")\n{RANGED}'
    _, told, where = run_cells(tmp_path, LOAD, cell, "print(os.getcwd())")
    assert told.printed.splitlines() == [
        "trace: a trace.json   (opprof trace show, or ui.perfetto.dev)",
        "run: run.json   (opprof show, opprof compare)",
    ]
    assert '"load"' in (tmp_path / "a trace.json").read_text()
    assert read_run(tmp_path / "run.json").tests[0].node_id == "cell"
    assert where.printed == f"{tmp_path / 'below'}\n"


def test_two_cells_are_compared(tmp_path: Path) -> None:
    more = RANGED.replace("range(3)", "range(4)")
    _, _, same, risen = run_cells(
        tmp_path,
        LOAD,
        f"%%opprof -q -o base.json\n{RANGED}",
        f"%%opprof --compare base.json\n{RANGED}",
        f"%%opprof --compare base.json\n{more}",
    )
    assert "1 passed" in same.shown[1]["text/plain"]
    assert "REGRESSED: 1 more" in risen.shown[1]["text/plain"]
    assert "<td" in risen.shown[1]["text/html"]
    assert risen.error is None


def test_help_has_every_option(tmp_path: Path) -> None:
    _, told = run_cells(tmp_path, LOAD, "print(get_ipython().find_cell_magic('opprof').__doc__)")
    for option in ("--shapes", "--sort", "--rows", "--trace", "--output", "--compare", "--store", "-q", "-r"):
        assert option in told.printed
    assert "%%opprof" in told.printed


def test_nothing_else_imports_ipython(tmp_path: Path) -> None:
    program = (
        "import sys, pytest_opprof, pytest_opprof.plugin.hooks\n"
        "from pytest_opprof.cli.main import main, whole_parser\nwhole_parser()\nprint('IPython' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.slow
def test_a_notebook_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    cells = [
        LOAD,
        f"%%opprof --rows=-1\n{RANGED}\nprint('sent by a thread of the kernel')",
        "%%opprof\n1 / 0",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="ZeroDivisionError"):
        client.execute()
    printed, shown = notebook.cells[1].outputs
    assert printed["text"].startswith("sent by")
    assert re.search(r"load +\S+%.* 3 ", shown["data"]["text/html"])
    assert "background" not in shown["data"]["text/html"]
    table, error = notebook.cells[2].outputs
    assert "text/html" in table["data"]
    assert error["ename"] == "ZeroDivisionError"
