"""``make demo-fleet``: a straggler and a regression among 64 ranks, as its page shows it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_page_shows_what_the_demo_prints() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo_fleet.py")],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "COLUMNS": "100"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8").partition("$ make demo-fleet\n")[2]
    expected = shown.partition("\n```")[0].splitlines()
    told = done.stdout.splitlines()
    # The number of reading processes depends on the machine.
    assert [line.partition(", with ")[0] for line in told] == [
        line.partition(", with ")[0] for line in expected
    ]
