"""Answers of `opprof mcp` fit an agent's context, however large a run is."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from e2e.agent import Agent, agent_in
from e2e.conftest import MakeProject
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.results.files import write_run
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples

TESTS = 500


def many(*ops: str, count: int = 1, **others: Any) -> list[TestResult]:
    """Tests that run these ops, in whose names a number stands for the test's."""
    return [
        simple_test({op.format(at): count for op in ops}, node_id=f"t.py::test_{at}", **others)
        for at in range(TESTS)
    ]


@pytest.fixture(scope="module")
def agent(make_project: MakeProject) -> Iterator[Agent]:
    """Runs that are too large: in their tests, causes or steps, or by a single test."""
    values = Samples.of(range(1_000))
    hostile = simple_test({"aten::mul": 1}, unstable=tuple(f"{at}" * 200 for at in range(1_000)))
    long = simple_test({"aten::mul": 1}, steps=1_000, totals={"total.self_cpu_time_total": values})
    folder = make_project("large").folder
    for name, tests in {
        "base": many("aten::mul"),
        "head": many("aten::mul", count=2),
        "causes": many("aten::mul", "aten::op{}"),
        "long": [long],
        "hostile": [hostile],
    }.items():
        write_run(folder / f"{name}.json", simple_run(*tests))
    with agent_in(folder) as agent:
        yield agent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("show_run", {"run": "head.json"}), ("compare_runs", {"base": "base.json", "head": "head.json"})],
)
def test_a_page_ends_before_it_is_too_long(agent: Agent, tool: str, arguments: dict[str, str]) -> None:
    answer = agent.ask(tool, **arguments, limit=200)
    assert len(json.dumps(answer)) < 30_000
    shown = len(answer["tests"])
    assert 10 < shown < 200
    assert answer["more"] == f"tests left out: {TESTS - shown}. Ask again with offset={shown}"
    (following, *_) = agent.ask(tool, **arguments, offset=shown)["tests"]
    assert following["node_id"] == f"t.py::test_{shown}"


def test_causes_of_most_tests_are_listed(agent: Agent) -> None:
    (cause,) = agent.ask("compare_runs", base="base.json", head="head.json")["causes"]
    assert cause["title"].startswith("cause 1, 500 tests: aten::mul +1 a step")
    assert cause["tests"] == [f"t.py::test_{at}" for at in range(20)]
    answer = agent.ask("compare_runs", base="base.json", head="causes.json")
    assert [cause["number"] for cause in answer["causes"]] == list(range(1, 21))
    assert answer["causes_left_out"] == TESTS - 20


@pytest.mark.slow
def test_many_steps_are_shown_as_a_range(agent: Agent) -> None:
    totals = {"total.self_cpu_time_total": {"sum": 499_500, "min": 0, "max": 999}}
    assert agent.ask("show_run", run="long.json")["tests"][0]["totals"] == totals
    assert agent.ask("show_run", run="long.json", test="test_x")["test"]["totals"] == totals


def test_a_test_that_is_too_large_is_refused(agent: Agent) -> None:
    told = agent.refused("show_run", {"run": "hostile.json", "test": "test_x", "limit": 1})
    assert told.startswith("the answer has ")
    assert told.endswith("more than 60000: ask for less, or run opprof show or opprof compare in a terminal")
