"""An A/B in a file, and recomputed from the runs."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.documents.ab_runs import MS, many_tests, near, one_test, side
from support.documents.strategies import simple_run

from pytest_opprof.compare.document import read_comparison
from pytest_opprof.compare.timing.comparison import TimeComparison, TimeSettings
from pytest_opprof.compare.timing.document import (
    read_judged,
    time_comparison_to_document,
    write_time_comparison,
)
from pytest_opprof.compare.timing.judge import compare_times
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import DocumentError
from pytest_opprof.results.files import read_run, write_run
from pytest_opprof.results.run import Outcome, Run


def regressed() -> TimeComparison:
    """One slower test, one without times, one new test."""

    def runs(middle_ns: int, seed: int, *, extra: bool) -> list[Run]:
        new = (one_test(MS, node_id="tests/test_a.py::test_new"),) if extra else ()
        bare = replace(one_test(MS, node_id="tests/test_a.py::test_bare"), totals={})
        return [replace(run, tests=(*run.tests, bare, *new)) for run in side(near(middle_ns, seed=seed))]

    slower = round(4.4 * MS)
    return compare_times(
        runs(4 * MS, 1, extra=False),
        runs(slower, 2, extra=True),
        settings=TimeSettings(min_effect=Fraction(2, 100), max_noise=Fraction(1, 4), least_processes=9),
        confirmation=(runs(4 * MS, 3, extra=False), runs(slower, 4, extra=True)),
    )


@pytest.mark.parametrize("name", ["ab.json", "ab.json.gz"])
def test_comparison_survives_the_round_trip(name: str, tmp_path: Path) -> None:
    found = regressed()
    assert found.counts == {Verdict.REGRESSED: 1, Verdict.INCONCLUSIVE: 1, Verdict.NEW: 1}
    write_time_comparison(tmp_path / name, found)
    assert read_judged(tmp_path / name) == found


def test_exact_part_is_read_as_any_comparison(tmp_path: Path) -> None:
    found = regressed()
    write_time_comparison(tmp_path / "ab.json", found)
    assert read_comparison(tmp_path / "ab.json") == found.exact


def test_comparison_is_redone_from_the_runs(tmp_path: Path) -> None:
    times = [near(4 * MS, seed=1), near(2 * MS, seed=2)]
    sides = many_tests(times), many_tests([near(5 * MS, seed=3), near(2 * MS, seed=4)])
    read: tuple[list[Run], list[Run]] = ([], [])
    for at, runs in enumerate(sides):
        for index, run in enumerate(runs):
            path = tmp_path / f"{at}-{index}.json"
            write_run(path, run)
            read[at].append(read_run(path))
    assert compare_times(*read) == compare_times(*sides)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        pytest.param(
            lambda times: times["tests"].append(times["tests"][0]), "times.tests", id="a-test-twice"
        ),
        pytest.param(lambda times: times["tests"].pop(), "is not among them", id="a-test-without-times"),
        pytest.param(
            lambda times: times["tests"][0]["times"].update(base_ns=[]),
            "a side has no processes",
            id="empty-side",
        ),
        pytest.param(
            lambda times: times["tests"][0]["times"]["base_ns"].append(0), "0 is less than 1", id="no-time"
        ),
        pytest.param(
            lambda times: times["tests"][0]["times"]["base_ns"].extend([1] * 1_000), "entries", id="too-many"
        ),
        pytest.param(
            lambda times: times["tests"][0].update(flagged="sideways"), "sideways", id="no-direction"
        ),
    ],
)
def test_broken_document_is_refused(damage: Any, words: str, tmp_path: Path) -> None:
    document = time_comparison_to_document(regressed())
    damage(document["times"])
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(DocumentError, match=words):
        read_judged(path)


def test_names_of_any_length_fit_the_document(tmp_path: Path) -> None:
    long = f"tests/test_a.py::{'x' * 4_000}"
    wild = [4 * MS, 6 * MS, 6 * MS + 1, 4 * MS + 1] * 3
    runs = side(wild, lambda wall_ns: one_test(wall_ns, node_id=long))
    failing = [simple_run(replace(run.tests[0], outcome=Outcome.FAILED)) for run in runs]
    for head in (runs, failing):
        found = compare_times(runs, head)
        write_time_comparison(tmp_path / "long.json", found)
        assert read_judged(tmp_path / "long.json") == found
