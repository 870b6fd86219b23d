"""JUnit XML as a CI server reads it."""

from xml.etree import ElementTree as ET

from support.documents.compared import cloning, compared, mixed, named, slower
from support.documents.strategies import simple_run

from pytest_opprof.report.junit import junit
from pytest_opprof.report.summary import Judged
from pytest_opprof.results.run import Outcome


def cases(comparison: Judged) -> dict[str, ET.Element]:
    suites = ET.fromstring(junit(comparison).encode())  # noqa: S314 - just written
    return {case.attrib["name"]: case for case in suites.iter("testcase")}


def test_each_verdict_has_its_element() -> None:
    found = cases(mixed())
    assert {name: [child.tag for child in case][1:] for name, case in found.items()} == {
        "broken": ["error"],
        "worse": ["failure"],
        "limited": ["failure"],
        "unlike": ["failure"],
        **{name: [] for name in ("other", "better", "new", "same")},
    }
    suite = ET.fromstring(junit(mixed()).encode())[0]  # noqa: S314
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "8",
        "failures": "3",
        "errors": "1",
        "skipped": "0",
    }


def test_a_failure_has_the_section_that_pytest_shows() -> None:
    case = cases(cloning())["test_step"]
    assert (case.get("classname"), case.get("file")) == ("tests.test_model", "tests/test_model.py")
    failure = case.find("failure")
    assert failure is not None
    assert failure.attrib["message"].startswith("REGRESSED: 4 more ops in each step than main@1a2b3c4")
    lines = (failure.text or "").splitlines()
    assert "  aten::clone     0 ->  2  +2  new" in lines
    assert 'intended? opprof accept tests/test_model.py::test_step --reason "..."' in lines
    properties = {one.get("name"): one.get("value") for one in case.iter("property")}
    assert properties == {
        "opprof.verdict": "REGRESSED",
        "opprof.ops.count": "25",
        "opprof.ranges.count": "0",
    }


def test_an_ab_has_the_time_of_a_step() -> None:
    case = cases(slower())["test_1"]
    assert 0.0043 < float(case.attrib["time"]) < 0.0045
    failure = case.find("failure")
    assert failure is not None
    assert (failure.text or "").startswith("time 4.00 ms -> 4.37 ms (+9.4 %): slower by 9.4 %")


def test_failures_of_an_ab_are_accepted_from_its_file() -> None:
    failure = cases(slower())["test_0"].find("failure")
    assert failure is not None
    assert "\nintended? opprof accept --comparison FILE tests/test_a.py::test_0" in (failure.text or "")


def test_unrun_tests_are_skipped_and_classnames_complete() -> None:
    failed = named("TestModel::test_step[a]", {}, outcome=Outcome.FAILED)
    (case,) = cases(compared(None, simple_run(failed))).values()
    skipped = case.find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "the test ended as failed"
    assert case.get("classname") == "tests.test_model.TestModel"


def test_parameters_stay_in_the_name() -> None:
    run = simple_run(named("TestModel::test_op[aten::add]", {"aten::add": 1}))
    (case,) = cases(compared(None, run)).values()
    assert (case.get("classname"), case.get("name")) == (
        "tests.test_model.TestModel",
        "test_op[aten::add]",
    )
