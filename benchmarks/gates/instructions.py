"""Compares unchanged code by its Python instructions, in fresh processes with random hash seeds.

``python -m benchmarks.gates.instructions`` makes the comparisons that the file lacks, and prints a table. It
exits with 1 if one of them failed. ``--python`` names another interpreter that has pytest-opprof, NumPy and
perhaps torch.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.gates import project
from benchmarks.gates.neighbour import neighbour
from benchmarks.gates.trials import FOLDER, Trial, add_files, at_most, files, trials
from benchmarks.table import Row, as_text

_PROCESSES: Final = 200
_DOCUMENT: Final = "run.json"
_TOTAL: Final = "python.instructions"

# STEADY has code whose counts could vary: caches that fill, event loops, finalizers, files with random names.
# UNSTEADY has code whose counts do vary and must be reported so: sets of strings, threads, clocks, secrets.
_TESTS: Final = """
import asyncio, collections, contextlib, functools, gc, logging, random, secrets, tempfile, threading, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ops import OPS, run

numpy = pytest.importorskip("numpy")
try:
    import torch
except ImportError:
    torch = None


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)

    def __hash__(self):
        return hash((self.x, self.y))


class Cycle:
    def __init__(self):
        self.own = self

    def __del__(self):
        sum(range(10))


@functools.lru_cache(maxsize=None)
def cached(n):
    return n if n < 2 else cached(n - 1) + cached(n - 2)


async def _one(n):
    await asyncio.sleep(0)
    return n


def gathered():
    async def all_of_them():
        return await asyncio.gather(*(_one(n) for n in range(10)))

    return asyncio.run(all_of_them())


def written():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.txt"
        path.write_text("a,b\\n" * 20)
        return [line.split(",") for line in path.read_text().splitlines()]


def points():
    found = {Point(n % 5, n % 3): n for n in range(40)}
    return [found.get(Point(n, 1)) for n in range(5)]


def words():
    counts = collections.defaultdict(int)
    for word in "to be or not to be that is the question".split() * 5:
        counts[word] += 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def cycles():
    for _ in range(20):
        Cycle()
    gc.collect()


def logged():
    log = logging.getLogger("quiet")
    for n in range(20):
        log.debug("%d", n)


def seeded():
    chance = random.Random(7)
    return sum(1 for _ in range(50) if chance.random() < 0.5)


def drawn():
    return [n for n in range(50) if random.random() < 0.5]


def contexts():
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(contextlib.suppress(ValueError))


STEADY = {
    "cached": lambda: cached(12),
    "cold_cache": lambda: (cached.cache_clear(), cached(12)),
    "contexts": contexts,
    "cycles": cycles,
    "drawn": drawn,
    "gathered": gathered,
    "logged": logged,
    "points": points,
    "seeded": seeded,
    "words": words,
    "written": written,
    "numpy_sum": lambda: numpy.arange(100).reshape(10, 10).sum(axis=0),
    "numpy_sort": lambda: numpy.sort(numpy.random.default_rng(1).random(50)),
    "numpy_solve": lambda: numpy.linalg.solve(numpy.eye(4) * 2, numpy.ones(4)),
    "numpy_text": lambda: str(numpy.arange(12).reshape(3, 4)),
    "numpy_unique": lambda: numpy.unique(numpy.arange(20) % 3, return_counts=True),
}


def a_set():
    for word in {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"}:
        if word.startswith(("b", "z")):
            return [n for n in range(100)]
        sum(n for n in range(100))


def threads():
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(lambda n: sum(i for i in range(n * 10)), range(20)))


def a_clock():
    until, turns = time.perf_counter() + 1e-4, 0
    while time.perf_counter() < until:
        turns += 1


def a_lottery():
    return [n for n in range(secrets.randbelow(400))]


UNSTEADY = {"a_set": a_set, "threads": threads, "a_clock": a_clock, "a_lottery": a_lottery}


@pytest.mark.profile
@pytest.mark.parametrize("name", OPS)
def test_op(name):
    run(name, 1)


@pytest.mark.profile
@pytest.mark.parametrize("name", STEADY)
def test_steady(name):
    STEADY[name]()


@pytest.mark.profile
@pytest.mark.parametrize("name", UNSTEADY)
def test_unsteady(name):
    UNSTEADY[name]()


if torch is not None:
    from test_torch import encoder, images, recurrent, tensors

    @pytest.mark.profile
    @pytest.mark.parametrize("made", [encoder, images, recurrent, tensors], ids=lambda made: made.__name__)
    def test_torch(made):
        torch.manual_seed(1)
        made()()
"""


def main() -> int:
    """Make the comparisons that the file lacks, and print the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gates.instructions", description=__doc__)
    parser.add_argument("--processes", type=int, default=_PROCESSES, metavar="N", help="how many comparisons")
    parser.add_argument(
        "--python", default=sys.executable, metavar="FILE", help="the interpreter that runs the tests"
    )
    add_files(parser, default=FOLDER / "instructions.jsonl")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    args = parser.parse_args()
    version = _version(args.python)
    with tempfile.TemporaryDirectory() as name, neighbour():
        found = _compared(Path(name), files(args), args.python, version=version, count=args.processes)
    rows = _rows(found, version=version)
    print(as_text(rows, markdown=args.markdown))
    return int(not all(row.holds for row in rows))


def _compared(folder: Path, paths: Sequence[Path], python: str, *, version: str, count: int) -> list[Trial]:
    project.write(folder, slower={})
    (folder / "test_counted.py").write_text(_TESTS, encoding="utf-8")
    session = partial(project.session, folder, "opprof", "test_counted.py", python=python)
    saved = session("--opprof-save=main")
    if saved.returncode:
        raise RuntimeError(f"saving the baseline failed: {saved.stdout}")

    def one(_: int) -> Trial:
        done = session("--opprof-baseline=main", f"--opprof-json={_DOCUMENT}")
        tests = json.loads((folder / _DOCUMENT).read_text(encoding="utf-8"))["tests"]
        return {
            "exit": done.returncode,
            "said": done.stdout[-2_000:] if done.returncode else "",
            "tests": len(tests),
            "counted": sum(_is_counted(test) for test in tests),
            "varied": sorted(test["node_id"] for test in tests if _varied(test)),
        }

    return trials(paths, kind=f"instructions, Python {version}", count=count, run=one)


def _is_counted(test: Any) -> bool:
    return _TOTAL in test["totals"]


def _varied(test: Any) -> bool:
    # A count that did not vary is written as a single number.
    return "instructions" in test["unheard"] or not isinstance(test["totals"].get(_TOTAL, 0), int)


def _version(python: str) -> str:
    code = "import platform; print(platform.python_version())"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _rows(found: Sequence[Trial], *, version: str) -> list[Row]:
    failed = sum(trial["exit"] != 0 for trial in found)
    counted = min(trial["counted"] for trial in found)
    varied = {name for trial in found for name in trial["varied"]}
    return [
        Row(
            what=f"Python {version}: comparisons of {found[0]['tests']} unchanged tests that fail",
            ours=at_most(failed, len(found)),
            peer=f"{counted} tests counted",
            figure=failed,
            at_most=0,
            unit="failed",
        ),
        Row(
            what="the same: tests of which a count varied, and that were not gated on it",
            ours=f"{len(varied)}: {', '.join(sorted(name.partition('::')[2] for name in varied))}",
            peer="",
            figure=len(varied),
            unit="tests",
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
