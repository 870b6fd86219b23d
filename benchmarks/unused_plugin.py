"""Compares a session without marked tests under our plugin and under an empty one."""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.child import environment, processor_time_s
from benchmarks.table import Row

_TESTS: Final = (
    "import pytest\n\n@pytest.mark.parametrize('n', range(50))\ndef test_n(n):\n    assert n >= 0\n"
)
_OURS: Final = "opprof"
_EMPTY: Final = "empty_plugin"
_MOST_MS: Final = 5.0
_MOST: Final = 0.02  # share of the session's time, if it takes longer than 250 ms
# Without other plugins and with a fixed hash seed, a session runs the same instructions each time.
_SETTINGS: Final = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONHASHSEED": "0"}


def rows(*, quick: bool) -> list[Row]:
    """The extra instructions of a session, counted by valgrind and converted to processor time.

    On a shared machine a clock cannot resolve 5 ms in 200.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print("unused: skipped, because this machine has no valgrind to count instructions", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_plain.py").write_text(_TESTS, encoding="utf-8")
        Path(folder, f"{_EMPTY}.py").touch()
        for plugin in (_OURS, _EMPTY):
            _session_s(folder, plugin)  # compiles what is new
        ours, empty = (_instructions(valgrind, folder, plugin) for plugin in (_OURS, _EMPTY))
        session_ms = 1e3 * statistics.median(_session_s(folder, _EMPTY) for _ in range(5 if quick else 25))
    return [
        Row(
            what="pytest session without a marked test",
            ours=f"{(ours - empty) / 1e6:+.1f} million instructions",
            peer=f"with an empty plugin {empty / 1e6:.0f} million, {session_ms:.0f} ms",
            figure=session_ms * (ours - empty) / empty,
            at_most=max(_MOST_MS, _MOST * session_ms),
            unit="ms",
        )
    ]


def _command(plugin: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", plugin]


def _session_s(folder: str, plugin: str) -> float:
    """The processor time of one session, including imports."""
    return processor_time_s(_command(plugin), folder=folder, added=_SETTINGS)


def _instructions(valgrind: str, folder: str, plugin: str) -> int:
    tool = [valgrind, "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run(
        [*tool, *_command(plugin)],
        cwd=folder,
        env=environment(_SETTINGS),
        capture_output=True,
        text=True,
        check=True,
    )
    [count] = re.findall(r"I +refs: +([\d,]+)", done.stderr)
    return int(count.replace(",", ""))
