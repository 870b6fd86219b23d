"""A session without a marked test: with our plugin, and with an empty one in its place."""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.child import processor_time_s
from benchmarks.table import Bound, Row

_TESTS: Final = (
    "import pytest\n\n@pytest.mark.parametrize('n', range(50))\ndef test_n(n):\n    assert n >= 0\n"
)
_OURS: Final = "opprof"
_EMPTY: Final = "empty_plugin"
_UNSEEN: Final = 3.0  # percent


def rows(*, quick: bool) -> list[Row]:
    """Whole sessions in pairs, one with our plugin and one with the empty one: the middle of the differences.

    It is within noise if it is less than twice what the difference of one pair usually is off that middle,
    or less than three percent.
    """
    differences, without = [], []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_plain.py").write_text(_TESTS, encoding="utf-8")
        Path(folder, f"{_EMPTY}.py").touch()
        for plugin in (_OURS, _EMPTY):
            _session_s(folder, plugin=plugin)  # compiles what is new
        for pair in range(10 if quick else 40):
            order = (_OURS, _EMPTY) if pair % 2 else (_EMPTY, _OURS)
            took = {plugin: _session_s(folder, plugin=plugin) for plugin in order}
            differences.append(took[_OURS] - took[_EMPTY])
            without.append(took[_EMPTY])
    middle, session = statistics.median(differences), statistics.median(without)
    noise = statistics.median(abs(one - middle) for one in differences)
    return [
        Row(
            what="pytest session without a marked test",
            ours=f"{middle * 1e3:+.1f} ms",
            peer=f"with an empty plugin {session * 1e3:.0f} ms, noise of a pair {noise * 1e3:.1f} ms",
            figure=100 * middle / session,
            bound=max(_UNSEEN, 200 * noise / session),
            direction=Bound.AT_MOST,
            unit="%",
        )
    ]


def _session_s(folder: str, *, plugin: str) -> float:
    """The processor time of one session, imports and all; more plugins would only add to the noise."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", plugin]
    return processor_time_s(command, folder=folder, environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
