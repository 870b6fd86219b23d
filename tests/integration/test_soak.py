"""A short soak test: nothing grows between windows, and no event is lost silently."""

from pathlib import Path

import pytest
from support.programs.children import run_python

ROOT = Path(__file__).resolve().parents[2]
# 120 windows. One of them has three times as many events as fit in its budget.
SOAK = """
import os
from pathlib import Path
from benchmarks import soak
run = soak.soak(Path(os.environ["OPPROF_DIR"]), windows=120, events=2_000, seconds=0, tell=lambda *_: None)
after = run.readings[70:]
assert run.windows == 120
assert run.lost == 0
assert 0.95 < run.largest / (32 << 20) < 1.05, run.largest
for what in ("descriptors", "threads", "files", "disk", "objects"):
    assert len({getattr(reading, what) for reading in after}) == 1, (what, after)
held = [row for row in soak.rows(run) if not row.what.startswith("an event, ")]
assert len(held) == 8
print("held")
"""


@pytest.mark.slow
def test_windows_leave_nothing_behind(tmp_path: Path) -> None:
    done = run_python(
        SOAK,
        environment={
            "OPPROF_DIR": str(tmp_path),
            "OPPROF_MAX_BYTES": str(32 << 20),
            "PYTHONPATH": str(ROOT),
        },
    )
    assert done.stdout.splitlines()[-1:] == ["held"], done.stderr
    assert not list(tmp_path.iterdir())
