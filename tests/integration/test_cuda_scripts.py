"""Random scripts of CUDA activities: a recording must hold exactly what they contain.

The fake CUDA is in a process beside this one, which replays one script after the other;
`test_cupti_scripts.c` does so with the native library alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cuda.cuda_scripts import NO_STEP, WHOLE, Expected, scripts

from pytest_opprof.capture.op_groups import MEASURES

REPLAYER = """
    import json, sys, threading
    from support.cuda import fake_cuda
    from pytest_opprof import record_function
    from pytest_opprof.capture.collector import Collector
    from pytest_opprof.capture.op_groups import MEASURES
    from pytest_opprof.kinds import EventKind

    cuda = fake_cuda.load(major=int(sys.argv[1]))
    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges", "cuda"}))
    open_ranges = {}  # by thread: Python's own locals end with each callback on a thread that is not its own

    def begin(name):
        ranges = open_ranges.setdefault(threading.get_native_id(), [])
        ranges.append(record_function(name))
        ranges[-1].__enter__()

    def end():
        open_ranges[threading.get_native_id()].pop().__exit__(None, None, None)

    def replay(script, drop, fail):
        cuda.reset()
        cuda.use_device(0)
        steps = []

        def step():
            if steps:
                collector.step_end()
            collector.step_begin(len(steps))
            steps.append(None)

        if fail:
            cuda.fail(fail[0], fail[1], nth=fail[2])
        collector.start(profile_memory=True)
        cuda.control("drop", drop)
        cuda.script(script, begin=begin, end=end, step=step)
        if steps:
            collector.step_end()
        return collector.stop()

    def cells(name, of_steps, outside):
        for measure in MEASURES:
            yield from ([name, step, measure, value] for step, value in enumerate(of_steps.get(measure, ())))
            yield [name, -1, measure, outside.get(measure, 0)]

    def told(recording):
        groups, use = recording.groups_with_device_work()
        ranges = {row: group for row, group in enumerate(groups) if group.kind is EventKind.RANGE}
        sums = list(cells("", use.steps, use.outside)) if use else []
        for row, group in ranges.items():
            sums += cells(group.name, group.steps, group.sums)
            inside = sum(group.steps["device_total_ns"])
            sums += [[group.name, step, "device_ns", ns] for step, ns in enumerate(group.steps["device_total_ns"])]
            sums.append([group.name, -1, "device_ns", group.device_total_ns - inside])
        for row, bytes in enumerate(recording.self_device_memory):
            sums += [["", recording.step[row], "memory", bytes]] if bytes else []
        for group in ranges.values():
            inside = sum(group.steps["device_memory"])
            sums += [[group.name, step, "memory", bytes] for step, bytes in enumerate(group.steps["device_memory"])]
            sums.append([group.name, -1, "memory", group.device_memory - inside])
        changes = [recording.memory(row) for row, kind in enumerate(recording.kind) if kind == EventKind.MEMORY]
        stats = recording.stats
        return {
            "sums": sums,
            "is_recorded": "cuda" in recording.sources,
            "problem": collector.problems.get("cuda") or collector.problems.get("memory-cuda", ""),
            "ranges": len(ranges),
            "rows": sum(EventKind.RUNTIME.value <= kind <= EventKind.SYNC.value for kind in recording.kind)
            + sum(change.device_type != 0 for change in changes),
            "dropped": stats.device_dropped,
            "untimed": stats.device_untimed,
            "unlaunched": stats.device_unlaunched,
            "lost": use.unmatched_launches if use else 0,
        }

    for line in sys.stdin:
        print(json.dumps(told(replay(**json.loads(line)))), flush=True)
"""

Replay = Callable[..., dict[str, Any]]
Cell = tuple[str, int, str]  # a range or the whole, a step, a measure


@pytest.fixture(scope="module", params=[12, 13])
def replay(request: pytest.FixtureRequest, fake_cuda_variables: dict[str, str]) -> Iterator[Replay]:
    """Replay a script over the fake CUDA of a version; return the recording."""
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(REPLAYER), str(request.param)]
    with subprocess.Popen(
        command,
        env={**os.environ, **fake_cuda_variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(script: str, *, drop: int = 0, fail: tuple[str, int, int] | None = None) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"script": script, "drop": drop, "fail": fail}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            assert line, f"the process ended with {process.wait()}"
            said: dict[str, Any] = json.loads(line)
            return said

        yield ask
        process.stdin.close()
        assert process.wait(60) == 0


def sums_of(said: dict[str, Any]) -> dict[Cell, int]:
    sums: Counter[Cell] = Counter()
    for name, step, measure, value in said["sums"]:
        sums[name, step, measure] += value
    return {cell: value for cell, value in sums.items() if value}


COUNTED = frozenset(MEASURES[: MEASURES.index("device_busy_time")]) | {"memory"}


def check_sums(said: dict[str, Any], expected: Expected) -> None:
    """Counts and bytes are exact, times to two nanoseconds for each record: they are converted from ticks."""
    sums = sums_of(said)
    counts = Counter({cell: value for cell, value in sums.items() if cell[2] in COUNTED})
    wanted = Counter({cell: value for cell, value in expected.sums.items() if cell[2] in COUNTED})
    if expected.adrift.total():
        counts, wanted = without_steps_of_whole(counts), without_steps_of_whole(wanted)
        for measure in COUNTED & expected.adrift.keys():
            wanted[WHOLE, NO_STEP, measure] += expected.adrift[measure]
    assert counts == wanted
    for name, step, measure in expected.sums:
        if measure == "device_ns" and name != WHOLE:
            cell = (name, step, measure)
            assert abs(sums.get(cell, 0) - expected.sums[cell]) <= 2 * said["rows"]


def without_steps_of_whole(sums: Counter[Cell]) -> Counter[Cell]:
    total: Counter[Cell] = Counter()
    for (name, step, measure), value in sums.items():
        total[name, NO_STEP if name == WHOLE else step, measure] += value
    return total


@given(script=scripts)
def test_random_scripts_are_recorded_exactly(replay: Replay, script: tuple[str, Expected]) -> None:
    text, expected = script
    said = replay(text)
    assert said["is_recorded"]
    assert not said["problem"]
    assert said["ranges"] == expected.ranges
    assert (said["dropped"], said["untimed"], said["unlaunched"], said["lost"]) == (
        0,
        expected.untimed,
        expected.unlaunched,
        expected.lost,
    )
    check_sums(said, expected)


@given(script=scripts, drop=st.integers(1, 60))
def test_dropped_records_of_a_script_are_counted(
    replay: Replay, script: tuple[str, Expected], drop: int
) -> None:
    text, expected = script
    said = replay(text, drop=drop)
    assert said["is_recorded"]
    assert said["dropped"] == min(drop, expected.records)
    assert expected.records - expected.nested <= said["rows"] + said["dropped"] <= expected.records


failures = st.tuples(
    st.sampled_from(
        [
            "cuptiActivityDisable",
            "cuptiActivityEnable",
            "cuptiActivityEnableDriverApi",
            "cuptiActivityFlushAll",
            "cuptiActivityGetNextRecord",
            "cuptiActivityGetNumDroppedRecords",
            "cuptiActivityRegisterCallbacks",
            "cuptiActivityRegisterTimestampCallback",
            "cuptiActivitySetAttribute",
            "cuptiGetCallbackName",
            "cuptiSetThreadIdType",
        ]
    ),
    st.sampled_from([1, 7, 8, 15, 21, 35, 39, 999]),
    st.integers(0, 8),  # the number of the call that fails; 0: each
)


@given(script=scripts, failure=failures)
def test_failed_cupti_calls_are_reported(
    replay: Replay, script: tuple[str, Expected], failure: tuple[str, int, int]
) -> None:
    text, expected = script
    said = replay(text, fail=failure)
    assert said["ranges"] == expected.ranges
    assert said["is_recorded"] or said["problem"]
    says_whole = not said["problem"]
    if says_whole and not any(said[what] for what in ("dropped", "untimed", "unlaunched", "lost")):
        assert (expected.untimed, expected.unlaunched, expected.lost) == (0, 0, 0)
        check_sums(said, expected)
