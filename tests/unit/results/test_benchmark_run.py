"""pytest-benchmark's files become runs, or one sentence says why not."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_opprof.errors import DocumentError, StoreError
from pytest_opprof.results.benchmark_run import (
    details_of,
    fingerprint_of,
    run_from_benchmarks,
    samples_of_rounds,
    samples_of_statistics,
)
from pytest_opprof.results.document import run_from_document, run_to_document
from pytest_opprof.results.run import Commit
from pytest_opprof.results.samples import Samples
from pytest_opprof.results.schema import Contract, validate

MACHINE = {
    "node": "a-host",
    "machine": "x86_64",
    "python_implementation": "CPython",
    "python_version": "3.11.7",
    "python_compiler": "GCC 13",
    "release": "6.8.0",
    "cpu": {"brand_raw": "A CPU", "count": 4, "l2_cache_size": 1024, "flags": ["sse"]},
}
COMMIT = {"id": "1a2b3c4" + 33 * "0", "dirty": True, "branch": "main", "project": "p", "time": None}


def benchmark(name: str = "test_a.py::test_x", **stats: Any) -> dict[str, Any]:
    return {
        "fullname": name,
        "stats": {"rounds": 2, "min": 1e-6, "max": 3e-6, "mean": 2e-6, **stats},
        "extra_info": {},
    }


def document(*benchmarks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "machine_info": MACHINE,
        "commit_info": COMMIT,
        "benchmarks": list(benchmarks) or [benchmark()],
        "datetime": "2026-03-04T05:06:07.000008+02:00",
        "version": "5.3.1",
        **more,
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "0001_main.json"


def test_times_machine_and_commit_are_carried_over(path: Path) -> None:
    first = benchmark("test_a.py::test_x[1]@group", data=[3e-6, 1.0004e-6])
    path.write_text(json.dumps(document(first, benchmark("test_a.py::test_y"))))
    run = run_from_benchmarks(path)
    assert {test.node_id: test.totals["wall_time"] for test in run.tests} == {
        "test_a.py::test_x[1]": Samples.of([3000, 1000]),
        "test_a.py::test_y": Samples(steps=2, total=4000, low=1000, high=3000),
    }
    assert all(test.timing.steps == 2 and test.steps == 0 for test in run.tests)
    assert run.created == datetime(2026, 3, 4, 3, 6, 7, 8, tzinfo=UTC)
    assert run.commit == Commit(id="1a2b3c4" + 33 * "0", dirty=True, branch="main")
    assert run.environment.fingerprint == {
        "python": "3.11",
        "implementation": "CPython",
        "machine": "x86_64",
        "cpu_model": "A CPU",
        "cpu_count": "4",
    }
    assert run.environment.details["cpu"] == "A CPU"
    assert "a-host" not in json.dumps(run_to_document(run))
    assert run.notes == ("imported from 0001_main.json of pytest-benchmark",)
    validate(run_to_document(run), Contract.RUN, where="the import")


def test_our_plugins_fields_take_precedence(path: Path) -> None:
    fields = {"cpu_count": "2", "torch": "2.13.0", "unknown": "x", "numpy": 7}
    path.write_text(json.dumps(document(opprof={"run_id": "1", "fingerprint": fields})))
    fingerprint = run_from_benchmarks(path).environment.fingerprint
    assert (fingerprint["cpu_count"], fingerprint["torch"]) == ("2", "2.13.0")
    assert not fingerprint.keys() & {"unknown", "numpy"}


@pytest.mark.parametrize("commit", [{}, {"id": "unversioned"}, {"id": 7}, {"id": "unknown", "error": "x"}])
def test_outside_a_repository_there_is_no_commit(path: Path, commit: dict[str, Any]) -> None:
    path.write_text(json.dumps(document(commit_info=commit, machine_info={})))
    run = run_from_benchmarks(path)
    assert run.commit is None
    assert run.environment.fingerprint == {}


def test_detached_head_is_not_a_branch(path: Path) -> None:
    path.write_text(json.dumps(document(commit_info=COMMIT | {"branch": "(detached head)"})))
    commit = run_from_benchmarks(path).commit
    assert commit is not None
    assert commit.branch is None


def test_last_entry_of_a_repeated_test_counts(path: Path) -> None:
    path.write_text(json.dumps(document(benchmark(min=2e-6), benchmark())))
    run = run_from_benchmarks(path)
    (test,) = run.tests
    assert test.totals["wall_time"].low == 1000
    assert run.notes[1] == "test_a.py::test_x is listed 2 times: the last entry is used"


def test_many_rounds_are_summed_up(path: Path) -> None:
    path.write_text(json.dumps(document(benchmark(rounds=5000, data=[1e-6] * 4999 + [3e-6]))))
    (test,) = run_from_benchmarks(path).tests
    assert test.totals["wall_time"] == Samples(steps=5000, total=5_002_000, low=1000, high=3000)


HITS = {"hits": {"hits": [{"_index": "b", "_source": benchmark()}]}}
BAD = {
    "empty": ("", "the file is empty"),
    "no JSON": ("{", "this is not JSON"),
    "no object": ("[]", "this is not a file of pytest-benchmark: it has no list of benchmarks"),
    "a run": ('{"kind": "opprof-run", "tests": []}', "this is not a file of pytest-benchmark"),
    "Elasticsearch": (json.dumps(HITS), "this comes from Elasticsearch"),
    "Elasticsearch lines": (json.dumps([{"_source": {}}]), "this comes from Elasticsearch"),
    "no benchmark": (json.dumps(document() | {"benchmarks": []}), "it has no benchmark"),
    "NaN": (json.dumps(document(benchmark(mean=float("nan")))), "NaN is not a JSON number"),
    "a large exponent": (
        json.dumps(document(benchmark())).replace("3e-06", "1e999"),
        "benchmarks[0].stats.max: inf is not a time in seconds",
    ),
    "negative": (
        json.dumps(document(benchmark(min=-1))),
        "benchmarks[0].stats.min: -1 is not a time in seconds",
    ),
    "truth": (json.dumps(document(benchmark(max=True))), "benchmarks[0].stats.max: True is not a time"),
    "no number": (
        json.dumps(document(benchmark(data=[1, "x"]))),
        "benchmarks[0].stats.data[1]: 'x' is not a time",
    ),
    "lost rounds": (
        json.dumps(document(benchmark(data=[1]))),
        "benchmarks[0].stats.data: these are not 2 rounds",
    ),
    "no rounds": (json.dumps(document(benchmark(rounds=0))), "benchmarks[0].stats.rounds: 0 is not a number"),
    "mean outside": (json.dumps(document(benchmark(mean=1))), "benchmarks[0].stats.mean: 1.0 is not between"),
    "no statistics": (json.dumps(document({"fullname": "x"})), "benchmarks[0].stats: None is not an object"),
    "no name": (json.dumps(document(benchmark(""))), "benchmarks[0].fullname: '' is not a name of a test"),
    "no benchmark object": (
        json.dumps(document() | {"benchmarks": [1]}),
        "benchmarks[0]: 1 is not an object",
    ),
    "no machine": (json.dumps(document(machine_info="x")), "machine_info: 'x' is not an object"),
    "no time": (json.dumps(document(datetime="yesterday")), "datetime: 'yesterday' is not a time"),
    "no datetime": (json.dumps(document(datetime=None)), "datetime: None is not a time"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_bad_file_is_refused_in_one_sentence(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(DocumentError) as refused:
        run_from_benchmarks(path)
    assert message in str(refused.value)
    assert str(refused.value).endswith(". The file was not used")
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_a_store_error(path: Path) -> None:
    with pytest.raises(StoreError):
        run_from_benchmarks(path)


seconds = st.floats(0, 1e5)


@settings(max_examples=50)
@given(st.lists(seconds, min_size=1, max_size=8))
def test_statistics_and_rounds_agree(rounds_s: list[float]) -> None:
    of_rounds = samples_of_rounds(rounds_s)
    mean = min(max(sum(rounds_s) / len(rounds_s), min(rounds_s)), max(rounds_s))
    of_statistics = samples_of_statistics(
        rounds=len(rounds_s), least_s=min(rounds_s), most_s=max(rounds_s), mean_s=mean
    )
    assert (of_rounds.steps, of_rounds.low, of_rounds.high) == (
        of_statistics.steps,
        of_statistics.low,
        of_statistics.high,
    )
    assert abs(of_rounds.total - of_statistics.total) <= len(rounds_s) + 1e-9 * of_rounds.total
    # the file format refuses contradictory samples
    again = Samples.from_document(of_statistics.to_document(), steps=len(rounds_s))
    assert again.total == of_statistics.total


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=50)
@given(
    st.dictionaries(st.sampled_from([*MACHINE, "datetime"]), json_values),
    st.dictionaries(st.sampled_from(["rounds", "min", "max", "mean", "data"]), json_values, max_size=2),
)
def test_any_file_is_a_valid_run_or_refused(
    tmp_path_factory: pytest.TempPathFactory, machine: dict[str, Any], stats: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("any") / "any.json"
    path.write_text(json.dumps(document(benchmark(**stats), machine_info=machine)))
    try:
        run = run_from_benchmarks(path)
    except DocumentError:
        return
    written = run_to_document(run)
    assert run_from_document(validate(written, Contract.RUN, where="any"), where="any") == run


@pytest.mark.parametrize(
    "machine", [{}, {"cpu": []}, {"cpu": {"brand_raw": None, "count": True}}, {"python_version": 3}]
)
def test_odd_machine_details_are_ignored(machine: dict[str, object]) -> None:
    assert details_of(machine) == fingerprint_of(machine) == {}
