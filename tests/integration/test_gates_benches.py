"""The benches of the gates: trials are stored, resumed and shown in a table."""

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function of that name; benches are outside the package."""
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.gates.trials").trials


class Squares:
    """Trials that are cheap to make, and counted."""

    def __init__(self) -> None:
        self.made: list[int] = []

    def __call__(self, number: int) -> dict[str, Any]:
        self.made.append(number)
        return {"value": number * number}


def test_rerun_makes_only_the_missing_trials(trials: Any, tmp_path: Path) -> None:
    path, run = tmp_path / "deep" / "trials.jsonl", Squares()
    trials([path], kind="ab", count=2, run=run)
    found = trials([path], kind="ab", count=4, run=run)
    assert run.made == [0, 1, 2, 3]
    assert [trial["value"] for trial in found] == [0, 1, 4, 9]


def test_kinds_are_counted_apart(trials: Any, tmp_path: Path) -> None:
    run = Squares()
    for kind in ("5 %", "10 %"):
        trials([tmp_path / "trials.jsonl"], kind=kind, count=1, run=run)
    assert run.made == [0, 0]


def test_trials_of_other_files_count_too(trials: Any, tmp_path: Path) -> None:
    """As from a second core; missing trials go to the first file."""
    first, second, run = tmp_path / "0.jsonl", tmp_path / "1.jsonl", Squares()
    trials([first], kind="ab", count=2, run=run)
    trials([second], kind="ab", count=3, run=run)
    found = trials([first, second], kind="ab", count=6, run=run)
    assert [trial["value"] for trial in found] == [0, 1, 4, 0, 1, 4]
    assert run.made == [0, 1, 0, 1, 2, 2]
    assert len(trials([first, second], kind="ab", count=2, run=run)) == 2
    assert len(first.read_text().splitlines()) == 3


def test_trial_of_a_torn_line_runs_again(trials: Any, tmp_path: Path) -> None:
    path, run = tmp_path / "trials.jsonl", Squares()
    trials([path], kind="ab", count=3, run=run)
    path.write_bytes(path.read_bytes()[:-9])
    trials([path], kind="ab", count=4, run=run)
    assert run.made == [0, 1, 2, 2, 3]
    assert [trial["trial"] for trial in trials([path], kind="ab", count=4, run=run)] == [0, 1, 2, 3]
    assert run.made == [0, 1, 2, 2, 3]


def test_trials_of_another_project_are_left_alone(trials: Any, tmp_path: Path) -> None:
    path, run = tmp_path / "trials.jsonl", Squares()
    other = '{"kind": "ab", "project": "another", "trial": 0}\n'
    path.write_text(other, encoding="utf-8")
    trials([path], kind="ab", count=1, run=run)
    assert run.made == [0]
    assert path.read_text(encoding="utf-8").startswith(other)


def test_both_gates_of_pytest_benchmark_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    flagged = importlib.import_module("benchmarks.gates.peers").flagged
    bench = (
        "import time\n\ndef test_it(benchmark):\n    benchmark.pedantic(time.sleep, args=({},), rounds=3)\n"
    )
    path = tmp_path / "bench_ops.py"
    path.write_text(bench.format(0.001))
    slower = flagged(tmp_path, change=lambda: path.write_text(bench.format(0.1)))
    assert [len(tests) for tests in slower.values()] == [1, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bench", "rows"),
    [
        pytest.param(
            ["power", "--size=20"], ["one op slower by 20 %: found and named, at least"], id="power"
        ),
        pytest.param(
            ["false_alarms"],
            ["exact gates over unchanged code: comparisons that fail", "opprof ab over 33 unchanged ops"],
            id="false-alarms",
        ),
    ],
)
def test_table_has_one_trial(bench: list[str], rows: list[str], tmp_path: Path) -> None:
    file = tmp_path / "trials.jsonl"
    command = [sys.executable, "-m", f"benchmarks.gates.{bench[0]}", *bench[1:], "--trials=1"]
    done = subprocess.run([*command, f"--file={file}"], cwd=ROOT, capture_output=True, text=True, check=False)
    # A single random trial may miss a bound that holds for the full count.
    assert done.returncode in {0, 1}, done.stderr
    assert all(row in done.stdout for row in rows)
