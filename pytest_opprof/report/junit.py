"""A comparison as JUnit XML, for CI servers: one test case for each compared test."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from pytest_opprof.compare.comparison import TestComparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import TOTALS, Family
from pytest_opprof.report.causes import accepting, test_acceptance
from pytest_opprof.report.rows import value_text
from pytest_opprof.report.section import failure_section
from pytest_opprof.report.summary import Judged, Summary, TestSummary
from pytest_opprof.report.text import cut_end, escaped
from pytest_opprof.results.names import parts_of
from pytest_opprof.units import NS_IN_S

_WIDTH = 120
_MOST_TEXT = 500
PREFIX = "opprof."  # of the properties


def junit(comparison: Judged) -> str:
    """The XML document of a suite named ``opprof``.

    A verdict that fails a session by default is a failure, with pytest's section; a failed measurement is an
    error, and a test that did not run is skipped. Characters that XML cannot hold, and control and bidi
    characters, are written as escapes.
    """
    summary = Summary.of(comparison)
    accept = accepting(summary)
    suite = ET.Element("testsuite", name="opprof", tests=str(len(summary.tests)))
    cases = [_case(test, accept=accept) for test in summary.tests]
    for kind in ("failure", "error", "skipped"):
        found = sum(case.find(kind) is not None for case in cases)
        suite.set({"failure": "failures", "error": "errors"}.get(kind, kind), str(found))
    suite.set("timestamp", f"{summary.exact.created:%Y-%m-%dT%H:%M:%S}")
    suite.set("time", "0.000")
    suite.extend(cases)
    suites = ET.Element("testsuites", name="opprof")
    suites.append(suite)
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def _case(test: TestSummary, *, accept: str) -> ET.Element:
    file, *names = parts_of(test.node_id)
    *classes, last = names or [file]
    module = file.removesuffix(".py").replace("/", ".")
    case = ET.Element(
        "testcase",
        classname=escaped(".".join([module, *classes])),
        name=escaped(last),
        file=escaped(file),
        time=_seconds(test),
    )
    properties = ET.SubElement(case, "properties")
    for key, value in properties_of(test.exact, verdict=test.verdict) if test.exact is not None else ():
        ET.SubElement(properties, "property", name=key, value=value)
    if test.is_failing:
        assert test.verdict is not None, "a test that fails has a verdict"
        tag = "error" if test.verdict is Verdict.ERROR else "failure"
        message = cut_end(escaped(f"{test.verdict.label}: {test.reason}"), width=_MOST_TEXT)
        outcome = ET.SubElement(case, tag, type=f"opprof.{test.verdict}", message=message)
        outcome.text = "\n".join(_told(test, accept=accept))
    elif not test.did_run:
        ET.SubElement(case, "skipped", message=cut_end(escaped(test.reason), width=_MOST_TEXT))
    return case


def _told(test: TestSummary, *, accept: str) -> Iterator[str]:
    """The time of an A/B, and the section of the exact gates."""
    for row in test.rows:
        if row.metric == "time":
            yield escaped(f"time {row.base} -> {row.head} ({row.change}): {test.reason}")
            yield ""
    if test.exact is None:
        yield escaped(test.reason)
    else:
        # Each case is read alone, so it has its own test's command.
        intended = test_acceptance(test.node_id, accept)
        yield from failure_section(test.exact, baseline=None, width=_WIDTH, intended=intended)


def properties_of(test: TestComparison, *, verdict: Verdict | None) -> list[tuple[str, str]]:
    """A test's exact totals, and the verdict of all its gates, as properties; times alone mean nothing."""
    found = [] if verdict is None else [(f"{PREFIX}verdict", verdict.label)]
    totals = test.head.totals if test.head is not None else {}
    for name, metric in TOTALS.items():
        if name in totals and metric.family is not Family.TIME:
            found.append((PREFIX + name, value_text(totals[name], unit=metric.unit)))
    return found


def _seconds(test: TestSummary) -> str:
    """The time of one step of the head, if an A/B judged it."""
    if test.times is None or test.times.times is None:
        return "0.000"
    return f"{test.times.times.quartiles[1] / NS_IN_S:.6f}"
