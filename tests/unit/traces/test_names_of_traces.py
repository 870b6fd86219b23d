"""Names of loaded traces: each trace's own, and released with it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_opprof.traces.kineto import load_trace

READER = """
import json, os, sys
from pathlib import Path

import pytest
from pytest_opprof.traces.kineto import load_trace

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

path, sizes = Path(sys.argv[1]), []
for trace in range(60):
    slices = ",".join(
        f'{{"ph":"X","cat":"cpu_op","name":"op {trace}-{i}","pid":1,"tid":1,"ts":{2 * i},"dur":1}}'
        for i in range(20_000)
    )
    path.write_text(f'{{"traceEvents":[{slices}]}}')
    read = load_trace(path).recording
    for event in (0, 10_000, 19_999):
        assert read.name(event) == f"op {trace}-{event}"
    del read
    sizes.append(resident())
print(json.dumps(sizes))
"""


def _trace(path: Path, *names: str) -> Path:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 2 * i, "dur": 1}
        for i, name in enumerate(names)
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    return path


@pytest.mark.slow
def test_closed_traces_release_their_names(tmp_path: Path) -> None:
    # 1.2 million names: more than a process's name ids
    done = subprocess.run(
        [sys.executable, "-c", READER, str(tmp_path / "trace.json")],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    sizes = json.loads(done.stdout)

    assert max(sizes[45:]) - max(sizes[30:40]) < 1 << 20


def test_open_traces_keep_their_names(tmp_path: Path) -> None:
    kept = load_trace(_trace(tmp_path / "kept.json", "shared", "its own"))
    for number in range(50):
        load_trace(_trace(tmp_path / "other.json", "shared", f"another {number}")).events()

    assert [kept.recording.name(event) for event in range(2)] == ["shared", "its own"]
