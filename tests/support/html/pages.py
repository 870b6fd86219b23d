"""Comparisons for page tests: a small one, and one with hostile names."""

from dataclasses import replace
from typing import Any

from support.documents.compared import HEAD, MAIN, compared
from support.documents.strategies import calling, simple_run, simple_test

from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import Environment, TestResult
from pytest_opprof.results.samples import Samples
from pytest_opprof.units import Unit

WORSE = "tests/test_model.py::test_worse[bf16]"
OTHER = "tests/test_model.py::test_other"
SAME = "tests/test_model.py::test_same"
NEW = "tests/test_new.py::test_new"
_PLACE = {"python": "3.11", "torch": "2.13.0"}
# texts that a parser, a terminal or a browser could interpret
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "<!--<script>",
    "]]>&lt;b&gt;&#60;i&#62;",
    "javascript:alert(3)",
    "https://example.org/",
    "'\"`${alert(4)}{{7*7}}{% raw %}",
    "\u202egnp.exe",
    "\x00\x1b[31m\ud800\u2028",
    "__proto__",
    "x" * 1_000,
)


def _in_two_places(base: list[TestResult], head: list[TestResult]) -> Comparison:
    """Two runs of these tests, on different hosts."""
    before = simple_run(
        *base,
        run_id="base",
        name="main",
        commit=MAIN,
        environment=Environment(fingerprint=_PLACE | {"cpu_model": "this one"}),
    )
    now = simple_run(
        *head,
        run_id="head",
        commit=HEAD,
        environment=Environment(fingerprint=_PLACE | {"cpu_model": "that one"}),
    )
    return compared(before, now)


def small_comparison() -> Comparison:
    """Four tests: a worse one, one with another op, an unchanged one, a new one."""
    worse = calling(
        ("forward", 1, ("aten::linear", 4, ("aten::addmm", 4)), ("aten::clone", 2)), node_id=WORSE
    )
    slower = calling(
        ("forward", 1, ("aten::linear", 4, ("aten::addmm", 4)), ("aten::clone", 5, ("aten::empty", 5))),
        node_id=WORSE,
    )
    first, *others = slower.ops
    slower = replace(
        slower,
        ops=(first.with_metrics(self_cpu_time_total=Samples.of([1_000, 5_000, 3_000])), *others),
    )
    return _in_two_places(
        [
            worse,
            calling(("aten::mul", 3), ("aten::add", 3), node_id=OTHER),
            simple_test({"aten::mul": 12}, node_id=SAME),
        ],
        [
            slower,
            calling(("aten::addcmul", 3), node_id=OTHER),
            simple_test({"aten::mul": 12}, node_id=SAME),
            simple_test({"aten::mul": 700, STEP_NAME: 1}, node_id=NEW),
        ],
    )


def small_history() -> dict[str, list[dict[str, Any]]]:
    """The number of the worse test's ops in some runs."""
    values = (6.0, 6.0, None, 10.0, 10.0, 15.0)
    points = [
        {"title": f"2026-01-0{day} {day:07x}", "value": value, "is_change": day in {4, 6}, "because": "torch"}
        for day, value in enumerate(values, start=1)
    ]
    return {WORSE: [{"label": "ops", "unit": Unit.COUNT, "points": points, "note": "a note"}]}


def hostile_comparison() -> Comparison:
    """Hostile names wherever a file has a name."""
    tests = [
        calling(
            *((name[:1_000], at + 2, (f"{name}{name}"[:1_000], 1)) for at, name in enumerate(HOSTILE)),
            node_id=f"tests/{HOSTILE[0]}.py::test[{name}]",
        )
        for name in HOSTILE
    ]
    ours = [
        replace(test, ops=tuple(replace(op, source=HOSTILE[1], parent_op=HOSTILE[0]) for op in test.ops))
        for test in tests
    ]
    more = [
        calling(*((name, at + 3) for at, name in enumerate(HOSTILE)), node_id=test.node_id) for test in tests
    ]
    found = _in_two_places(ours, more)
    return replace(
        found,
        notes=HOSTILE,
        tests=tuple(replace(test, advisories=HOSTILE, reason=HOSTILE[1]) for test in found.tests),
        head=replace(found.head, name=HOSTILE[0]),
    )
