"""A killed process's session file: its share of ops, and its counters by name."""

import signal
from pathlib import Path

import pytest
from support.programs.children import run_python

from pytest_opprof.capture import counters
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.session_files import recovered

DIES = """
import os, signal
{imports}
from pytest_opprof import range_pop, range_push
from pytest_opprof.capture.collector import Collector

collector = Collector.instance()
collector.open(sources=frozenset({{"ranges", "ops"}}))
collector.start({arguments})
range_push("counted")
sum(range(100_000))
range_pop()
print(collector.session_path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def recording_of_the_dead(
    folder: Path, *, source: str = DIES, imports: str = "", arguments: str = ""
) -> Recording:
    done = run_python(
        source.format(imports=imports, arguments=arguments), environment={"OPPROF_DIR": str(folder)}
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    return recovered(Path(done.stdout.strip()))


def test_whole_recording_is_not_a_sample(tmp_path: Path) -> None:
    recording = recording_of_the_dead(tmp_path)
    assert [recording.name(row) for row in range(len(recording))] == ["counted"]
    assert (recording.stats.sampling, recording.counted) == (1, ())


def test_the_share_of_ops_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    recording = recording_of_the_dead(tmp_path, imports="import torch", arguments="sampling=0.25")
    assert recording.stats.sampling == 0.25


def test_calls_keep_the_names_of_their_rows(tmp_path: Path) -> None:
    started = "collector.start({arguments})\n"
    called = "class Nested:\n    def run(self): pass\nNested().run()\n"
    source = DIES.replace('"ranges", "ops"', '"ranges", "python"').replace(started, started + called)
    recording = recording_of_the_dead(tmp_path, source=source)
    names = {recording.name(row): recording.row_name(row) for row in range(len(recording))}
    (name,) = (name for name in names if name.endswith(": run"))
    assert names[name].endswith(": Nested.run")
    assert "(" not in names[name]


@pytest.mark.skipif(counters.refusal("task-clock") is not None, reason="the kernel counts nothing here")
def test_counters_keep_their_names(tmp_path: Path) -> None:
    chosen = '("task-clock", "pagefaults")'
    recording = recording_of_the_dead(tmp_path, arguments=f"counters={chosen}")
    assert recording.counted == ("task-clock", "pagefaults")
    found = recording.counters(0)
    assert list(found) == ["task-clock", "pagefaults"]
    assert found["task-clock"] > 0
