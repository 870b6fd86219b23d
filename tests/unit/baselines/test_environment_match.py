"""The nearest run that was measured in an environment like this session's."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.baselines.archive import Archive, open_store
from pytest_opprof.baselines.environment_match import MOST_RUNS, differences_of_counts, nearest_like
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Environment

NOW = datetime(2026, 1, 3, tzinfo=UTC)


def at(**fields: str) -> Environment:
    return Environment(fingerprint=fields)


@pytest.fixture
def store(tmp_path: Path) -> Archive:
    return open_store("dir:store", root=tmp_path)


def save(store: Archive, *environments: Environment) -> None:
    """A run in each environment, the newest first."""
    for days, environment in enumerate(environments):
        run = simple_run(simple_test({"aten::mul": 1}), environment=environment)
        run = replace(run, created=NOW - timedelta(days=days), run_id=f"{days:032x}")
        store.save("main", run, collected=Collected())


def found(store: Archive, here: Environment) -> int | None:
    """How many runs were skipped."""
    entries = store.entries("main")
    entry = nearest_like(here, entries, store=store)
    return None if entry is None else entries.index(entry)


OLD, NEW = at(python="3.11", torch="2.12.0", cpu_model="a"), at(python="3.11", torch="2.13.0", cpu_model="a")


@pytest.mark.parametrize(
    ("here", "passed"),
    [
        (NEW, 2),
        (OLD, 0),
        (at(python="3.11", torch="2.13.0", cpu_model="another"), 2),
        (at(python="3.11"), 0),
        (at(python="3.12", torch="2.13.0"), None),
    ],
    ids=["the third", "the newest", "CPU model is for times", "torch not known yet", "none"],
)
def test_the_first_that_counts_can_be_compared_with_is_taken(
    store: Archive, here: Environment, passed: int | None
) -> None:
    save(store, OLD, OLD, NEW, NEW)
    assert found(store, here) == passed


def test_far_runs_are_not_looked_into(store: Archive) -> None:
    far = replace(NEW, fingerprint={**NEW.fingerprint, "cpu_capability": "AVX2"})
    here = replace(NEW, fingerprint={**NEW.fingerprint, "cpu_capability": "AVX512"})
    save(store, *[OLD] * MOST_RUNS, *[far] * (MOST_RUNS - 1), here)
    assert found(store, here) == 2 * MOST_RUNS - 1, "runs of another family are not looked into"
    save(store, *[far] * (2 * MOST_RUNS))
    assert found(store, here) is None


def test_a_damaged_run_is_passed_over(store: Archive, tmp_path: Path) -> None:
    save(store, NEW, NEW)
    first, _ = store.entries("main")
    (file,) = (tmp_path / "store" / "main").glob(f"{first.key}*")
    for text in (
        b"",
        b"{",
        b'{"environment": 7}',
        b'{"environment": {"fingerprint": 7}}',
        b"\x1f\x8bno gzip",
    ):
        file.write_bytes(text)
        entries = sorted(store.entries("main"), key=lambda entry: entry.key != first.key)
        entry = nearest_like(NEW, entries, store=store)
        assert entry is not None
        assert entry.key != first.key


def test_packed_documents_are_read_as_well(store: Archive) -> None:
    packed = at(**{f"field{index}": "x" * 900 for index in range(60)}, torch="2.13.0")
    save(store, OLD, packed)
    assert found(store, at(torch="2.13.0")) == 1


def test_only_count_relevant_differences_are_named() -> None:
    assert differences_of_counts(OLD, NEW) == "torch 2.12.0 -> 2.13.0"
    assert differences_of_counts(OLD, replace(OLD, fingerprint={"cpu_model": "b"})) == ""


@pytest.mark.parametrize(("foreign", "passed"), [(19, 19), (20, None)])
def test_so_many_runs_are_looked_into(store: Archive, foreign: int, passed: int | None) -> None:
    unlike, like = at(python="3.11", triton="3.0"), at(python="3.11", triton="3.1")
    save(store, *[unlike] * foreign, like)
    assert found(store, like) == passed
