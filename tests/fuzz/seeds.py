"""``python -m fuzz.seeds``: the corpora anew, from what our own writers write.

What was found stays. To be run when a document's schema changed: `tests/integration/test_fuzz_corpora.py` says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fuzz.databases import dump_database, write_database
from fuzz.target import CORPORA, FOUND
from fuzz.targets.left import PATHS_AT, QUESTION, pieces
from support.cuda.nvidia_databases import NvprofRows, random_nvprof, write_nsys, write_nvprof
from support.documents.compared import cloning, mixed, slower
from support.documents.histories import FIRST_DAY, record_on_day, run_on_day
from support.documents.strategies import simple_run, simple_test
from support.forges.artifacts import artifact_of
from support.forges.github_api import HEAD, pull_request_event, workflow_run_event

from examples.demo import MUTATIONS, copied
from pytest_opprof.baselines.accepted import Acceptance, accept
from pytest_opprof.baselines.counts import reviewable
from pytest_opprof.compare.document import write_comparison
from pytest_opprof.compare.timing.document import write_time_comparison
from pytest_opprof.experiment.experiment_store import Death, Plan
from pytest_opprof.experiment.one_commit import Measured
from pytest_opprof.forge.sticky import Marker
from pytest_opprof.history.log import HistoryLog
from pytest_opprof.recovery.sessions import left_sessions
from pytest_opprof.results.files import read_run, run_to_bytes
from pytest_opprof.results.run import Commit, Environment, Run, TreeNode
from pytest_opprof.results.samples import Samples

Seed = tuple[str, str, bytes]  # the target, the file's name, the input
_THREAD = 0x0001_0002_3400_0011
# The demo's changes to its examples that these tests notice. A training step is too long for an input.
_CHANGES = ("clone", "layer", "stage")
_UPLOADED = ("test_inference", "test_loudest_frequency", "test_report")
# Only the largest is also grown: mutations find the others.
_LARGEST = "layer"
_GROWS: Final[Mapping[str, Mapping[str, str | int]]] = {
    "": {},
    "_wide": {"base": "wide", "ops": 24, "nodes": 24},
    "_long": {"base": "long", "tests": 48},
}
_SESSION = """
import os, signal
from pytest_opprof import record_function
from pytest_opprof.capture.collector import Collector
collector = Collector.instance()
collector.note(b"p\\n\\ntest_a")
collector.start()
with record_function("forward", "with=1"), record_function("inner"):
    pass
with record_function("left open"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def seeds(folder: Path) -> Iterator[Seed]:
    """All of them.

    Args:
        folder: For what writers can only write to a file.
    """
    yield from _documents(folder)
    yield from _histories(folder)
    yield from _databases(folder)
    yield from _others()
    yield from _left(folder)
    yield from _uploads(folder)


def _runs() -> dict[str, Run]:
    plain = simple_run(simple_test({"aten::mul": 3, "aten::clone": 1, "forward": 1}), name="main")
    tree = (
        TreeNode(parent=-1, name="forward", count=3, self_ns=9),
        TreeNode(parent=0, name="aten::mul", count=9, self_ns=9),
    )
    (test,) = plain.tests
    rows = tuple(
        replace(
            row.with_metrics(count=Samples.of([1, 2, 3]), flops=row.count),
            places={"model.py:4": 3},
            parent_op="forward",
        )
        for row in test.ops
    )
    full = replace(
        test,
        tree=tree,
        ops=rows,
        unstable=("aten::mul.count",),
        gates={"aten::mul.count": "exact", "*.self_cpu_time_total": "off"},
        limits={"ops.count": "<= 64"},
        settings={"torch": "2.13.0"},
    )
    commit = Commit(id="1a2b3c4" + "0" * 33, dirty=True, branch="main")
    return {"plain": plain, "full": simple_run(full, commit=commit, notes=("a note",))}


def _documents(folder: Path) -> Iterator[Seed]:
    for name, run in _runs().items():
        data = run_to_bytes(run, where=name)
        for target in ("run", "baseline", "import"):
            yield target, f"{name}.json", data
        yield "counts", f"{name}.json", reviewable(run, name="main")
        yield "artifact", f"{name}.zip", artifact_of(data)
        of_head = replace(run, commit=Commit(id=HEAD, dirty=False, branch="main"))
        yield "upload", f"{name}.json", run_to_bytes(of_head, where=name)
        yield "git-ref", name, f"main\t{'0' * 40}.json\n".encode() + data
    path = folder / "document.json"
    for name, comparison in {"cloning": cloning(places={"model.py:4": 3}), "mixed": mixed()}.items():
        write_comparison(path, comparison)
        yield "comparison", f"{name}.json", path.read_bytes()
    write_time_comparison(path, slower())
    yield "ab", "slower.json", path.read_bytes()
    entry = Acceptance(
        test="tests/test_a.py::test_x",
        op="aten::clone",
        metric="count",
        value=3,
        reason="meant",
        baseline="main",
        created=datetime(2026, 1, 2, tzinfo=UTC),
        commit=Commit(id="a" * 40, dirty=False),
    )
    kept = accept(folder / "accepted", [entry, replace(entry, op=None, metric="ops.count")])
    yield "accepted", "two.json", kept.read_bytes()


def _histories(folder: Path) -> Iterator[Seed]:
    log = HistoryLog(folder / "history")
    log.append(record_on_day(day, mul=mul, committed=FIRST_DAY) for day, mul in enumerate((2, 2, 3)))
    (segment,) = log.segments()
    yield "history", "three_runs.jsonl", segment.read_bytes()
    yield "import", "day.json", run_to_bytes(run_on_day(3), where="day.json")


def _databases(folder: Path) -> Iterator[Seed]:
    threads = NvprofRows(
        texts=[(1, "outer"), (2, "_ZN2at6native4gemmEv")],
        markers=[(1, 1, 1_000, 5), (1, 0, 5_000, 5)],
        calls=[(2_100, 2_200, 5, 9, 211), (2_300, 2_400, 5, 10, 31)],
        kernels=[(10_000, 10_400, 2, 9)],
        copies=[(11_000, 11_300, 1, 10)],
    )
    for name, rows in {"random": random_nvprof(5), "threads": threads}.items():
        dumped = dump_database(write_nvprof(folder / f"{name}.sqlite", rows))
        yield "nvprof", f"{name}.json", dumped
        yield "nvprof", f"{name}.sqlite", _as_file(folder, dumped)
    path = write_nsys(
        folder / "nsys.sqlite",
        StringIds=[{"id": 1, "value": "inner"}, {"id": 3, "value": "cudaLaunchKernel_v7000"}],
        NVTX_EVENTS=[
            {"start": 1, "end": 90, "globalTid": _THREAD, "eventType": 59, "text": "outer"},
            {"start": 2, "end": 30, "globalTid": _THREAD, "endGlobalTid": 6, "eventType": 60, "textId": 1},
        ],
        CUPTI_ACTIVITY_KIND_RUNTIME=[
            {"start": 21, "end": 22, "globalTid": _THREAD, "correlationId": 9, "nameId": 3}
        ],
        CUPTI_ACTIVITY_KIND_KERNEL=[
            {"start": 40, "end": 44, "deviceId": 1, "streamId": 13, "correlationId": 9, "demangledName": 1}
        ],
        CUPTI_ACTIVITY_KIND_MEMCPY=[
            {"start": 50, "end": 60, "deviceId": 0, "streamId": 7, "correlationId": 9, "copyKind": 2}
        ],
    )
    dumped = dump_database(path)
    yield "nsys", "launch.json", dumped
    yield "nsys", "launch.sqlite", _as_file(folder, dumped)


def _as_file(folder: Path, dumped: bytes) -> bytes:
    """The same database as SQLite writes it, with small pages."""
    path = folder / "small.sqlite"
    assert write_database(path, dumped)
    return path.read_bytes()


def _others() -> Iterator[Seed]:
    benchmarks = {
        "machine_info": {
            "machine": "x86_64",
            "python_version": "3.11.7",
            "cpu": {"brand_raw": "A", "count": 4},
        },
        "commit_info": {"id": "a" * 40, "dirty": True, "branch": "main"},
        "benchmarks": [
            {"fullname": "t.py::test_x", "stats": {"rounds": 2, "min": 1e-6, "max": 3e-6, "mean": 2e-6}},
            {"fullname": "t.py::test_y[1]", "stats": {"rounds": 2, "data": [1e-6, 2e-6]}},
        ],
        "datetime": "2026-03-04T05:06:07.000008+02:00",
        "opprof": {"fingerprint": {"torch": "2.13.0"}},
    }
    yield "benchmark", "two.json", json.dumps(benchmarks).encode()
    yield "event", "pull_request.json", json.dumps(pull_request_event()).encode()
    yield "event", "workflow_run.json", json.dumps(workflow_run_event()).encode()
    marker = Marker(key="0123456789abcdef", head="a" * 40, run=4, attempt=1)
    yield "comment", "ours.md", f"{marker.line}\n## A comment\n".encode()


def _left(folder: Path) -> Iterator[Seed]:
    left = folder / "left"
    left.mkdir()
    environment = {**os.environ, "OPPROF_DIR": str(left)}
    done = subprocess.run([sys.executable, "-c", _SESSION], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    (file,) = left_sessions([left])
    session = bytearray(file.path.read_bytes()[: 4_096 + 256 * 1_024])
    assert session.find(os.fsencode(file.names_path)) == PATHS_AT, "the header is another one"
    session[PATHS_AT : PATHS_AT + 2_048] = bytes(2_048)  # its reader supplies the paths of the files
    # The input holds only one segment, of one chunk, of the pool.
    names = file.names_path.read_bytes()
    yield "session", "killed", pieces((_with_one_chunk(session), names, b""))
    plan = Plan(
        base="a" * 40,
        head="b" * 40,
        prefix="",
        arguments=("-x",),
        setup="",
        python="",
        processes=12,
        steps=5,
        max_time=2.0,
        seed=1,
        opprof_version="0.1.0",
    )
    death = Death(round="first", index=3, side="base", how="it was killed by signal 9")
    deaths = json.dumps([asdict(death)]).encode()
    yield "plan", "one.json", json.dumps(asdict(plan)).encode()
    yield "plan", "one_death", json.dumps(asdict(plan)).encode() + b"\n---\n" + deaths
    state = {
        "question": asdict(QUESTION),
        "measured": {
            "a" * 40: asdict(Measured(value=3)),
            "b" * 40: asdict(Measured(value=None, reason="no")),
        },
    }
    yield "bisection", "two.json", json.dumps(state).encode()


def _with_one_chunk(session: bytearray) -> bytes:
    """The header, with one segment as long as the largest chunk in place of the pool's segments."""
    session[20:24] = (1).to_bytes(4, "little")
    session[24:32] = (256 * 1_024).to_bytes(8, "little")
    return bytes(session)


def _uploads(folder: Path) -> Iterator[Seed]:
    """Uploads of pull requests that change the examples, with the event and the comments around them."""
    full = _runs()["full"].tests
    marked = f"{Marker(key='0123456789abcdef', head=HEAD, run=4, attempt=1).line}\nnot of the job"
    suite = copied(folder / "project")
    mutations = [mutation for mutation in MUTATIONS if mutation.name in _CHANGES]
    for mutation in (None, *mutations):
        name = "unchanged" if mutation is None else mutation.name
        with contextlib.nullcontext() if mutation is None else suite.regressed(mutation):
            suite.pytest("-k", " or ".join(_UPLOADED), report=name)
        run = read_run(suite.reports / f"{name}.json")
        # no input depends on where it was measured
        here = Environment(fingerprint={"python": "3.11", "torch": "2.13.0"})
        run = replace(run, tests=(*run.tests, *full), environment=here, commit=Commit(id=HEAD, dirty=False))
        document = json.loads(run_to_bytes(run, where=name))
        for suffix, grow in _GROWS.items() if name == _LARGEST else [("", {})]:
            upload = {"event": workflow_run_event(), "run": document, "comments": [marked], "grow": grow}
            yield "upload", f"{name}{suffix}.json", json.dumps(upload, separators=(",", ":")).encode()
    yield "upload", "stage.zip", artifact_of(document)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for target, name, data in seeds(Path(folder)):
            assert not name.startswith(FOUND)
            path = CORPORA / target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            print(f"{target}/{name}: {len(data)} bytes")


if __name__ == "__main__":
    main()
