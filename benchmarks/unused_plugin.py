"""A session without a marked test: with our plugin, and without."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.table import Bound, Row

_TESTS = "import pytest\n\n@pytest.mark.parametrize('n', range(50))\ndef test_n(n):\n    assert n >= 0\n"


def rows(*, quick: bool) -> list[Row]:
    """Whole processes in pairs, one with and one without: the difference, against the noise of a pair."""
    pairs = 6 if quick else 25
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_plain.py").write_text(_TESTS, encoding="utf-8")
        _session(folder)
        differences, without = [], []
        for pair in range(pairs):
            order = (True, False) if pair % 2 else (False, True)
            took = {used: _session(folder, use_plugin=used) for used in order}
            differences.append(took[True] - took[False])
            without.append(took[False])
    middle = statistics.median(differences)
    noise = statistics.median(abs(one - middle) for one in differences)
    return [
        Row(
            what="pytest session without a marked test",
            ours=f"{middle * 1e3:+.1f} ms",
            peer=f"without {statistics.median(without) * 1e3:.0f} ms, noise of a pair {noise * 1e3:.1f} ms",
            figure=middle / noise,
            bound=2,
            direction=Bound.AT_MOST,
            unit="x noise",
        )
    ]


def _session(folder: str, *, use_plugin: bool = True) -> float:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    start = time.perf_counter()
    subprocess.run(
        command if use_plugin else [*command, "-p", "no:opprof"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - start
