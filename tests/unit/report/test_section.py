"""A failed test's section: its verdict, what changed and why, and the next step."""

import re
from pathlib import Path

from support.documents.compared import MAIN, cloning, compared, named
from support.documents.strategies import calling, cuda_test, simple_run

from pytest_opprof.report.section import failure_section, section_title
from pytest_opprof.report.terminal import summary_lines
from pytest_opprof.results.run import CaptureStats, TestResult, TreeNode

SECTION = """\
REGRESSED: 4 more ops in each step than main@1a2b3c4 (same in 3 of 3 steps, certified in 2 processes)

Called by the test; no line is known: call sites were not recorded
  aten::clone     0 ->  2  +2  new
    aten::copy_  12 -> 14  +2
  This copies the whole tensor once more. Drop the copy unless somebody writes to it, or needs this memory
  layout. (OP103)

all ops  21 -> 25  +4

advisory: self CPU 21.0 µs -> 25.0 µs (fastest of 3 steps; not gated)
traces:   head.json.gz
intended? record it: pytest --opprof-save=main"""


def test_section_has_verdict_op_cause_and_next_step() -> None:
    (test,) = cloning().tests
    lines = failure_section(test, baseline="main", width=110, traces=["head.json.gz"])
    assert "\n".join(lines) == SECTION
    assert section_title(test) == "opprof: tests/test_model.py::test_step"


# docs/comparing.md shows this.
REWRITTEN = """\
CHANGED: other ops than main@1a2b3c4, but no gated total rose

op                                      metric  base  head  change  cause
aten::mul + aten::add -> aten::addcmul  count     20    10     -10  fused in range 'forward'
encoder -> Encoder                      count      1     1       0  renamed

all ops  120 -> 110  -10"""


def test_replaced_ops_are_one_row_of_the_section(repository: Path) -> None:
    products = ("aten::addmm", 100)
    base = calling(("encoder", 1, products), ("forward", 1, ("aten::mul", 10), ("aten::add", 10)))
    head = calling(("Encoder", 1, products), ("forward", 1, ("aten::addcmul", 10)))
    comparison = compared(simple_run(base, name="main", commit=MAIN), simple_run(head))
    lines = failure_section(comparison.tests[0], baseline="main", width=110)
    assert "\n".join(lines[: lines.index("", 6)]) == REWRITTEN
    assert REWRITTEN in (repository / "docs" / "comparing.md").read_text(encoding="utf-8")
    told = summary_lines(comparison, width=120)[0].text
    assert told == "1 changed: test_x (aten::mul + aten::add -> aten::addcmul -10)"


def rows_told(base: TestResult, head: TestResult) -> list[str]:
    """The rows of the section of changes: what changed, and in which metric."""
    (test,) = compared(simple_run(base, name="main"), simple_run(head)).tests
    lines = failure_section(test, baseline=None, width=120)
    return [
        re.split(r" +[0-9]", line.strip())[0]
        for line in lines
        if " -> " in line and not line.startswith("advisory")
    ]


def test_device_rise_is_reported_once() -> None:
    base = cuda_test({"aten::mm": {"kernels": 1, "launches": 1}, "aten::to": {}})
    copy = {"copies": 1, "copies_dtoh": 1, "host_copies": 1, "copied_bytes": 64, "copied_bytes_dtoh": 64}
    head = cuda_test({"aten::mm": {"kernels": 2, "launches": 2}, "aten::to": copy})
    assert rows_told(base, head) == [
        "aten::mm kernels",
        "kernel of aten::mm",
        "aten::to copies_dtoh",
        "all kernels",
        "all DtoH copies",
        "all DtoH bytes",
    ]


def test_copies_both_ways_are_shown_by_direction() -> None:
    there = {"copies": 1, "copies_dtoh": 1, "host_copies": 1, "copied_bytes": 64, "copied_bytes_dtoh": 64}
    back = {"copies": 1, "copies_htod": 1, "host_copies": 1, "copied_bytes": 64, "copied_bytes_htod": 64}
    base = cuda_test({"aten::cpu": {}, "aten::cuda": {}})
    told = rows_told(base, cuda_test({"aten::cpu": there, "aten::cuda": back}))
    assert [row for row in told if row.startswith("all ")] == [
        "all HtoD copies",
        "all DtoH copies",
        "all HtoD bytes",
        "all DtoH bytes",
    ]


def test_unjudged_unchanged_totals_share_one_row() -> None:
    work = {"kernels": 1, "launches": 1, "copies": 1, "copies_dtod": 1}
    base = cuda_test({"aten::mm": work}, capture=CaptureStats(unmatched_kernels=2))
    assert rows_told(base, cuda_test({"aten::mm": work})) == ["all kernels"]
    moved = cuda_test({"aten::mm": {**work, "copies": 2, "copies_dtod": 2}})
    assert "all DtoD copies" in rows_told(base, moved)


def test_inner_rise_covers_that_of_outer_ops() -> None:
    tree = (
        TreeNode(parent=-1, name="forward", count=3, self_ns=0),
        TreeNode(parent=0, name="aten::linear", count=3, self_ns=0),
        TreeNode(parent=1, name="aten::addmm", count=3, self_ns=0),
    )

    def test_of(kernels: int, nbytes: int) -> TestResult:
        work = {"kernels": kernels, "launches": kernels, "copies": 1, "copied_bytes": nbytes}
        return cuda_test({"forward": work, "aten::linear": work, "aten::addmm": work}, tree=tree)

    told = [row for row in rows_told(test_of(1, 8), test_of(3, 16)) if not row.startswith("all ")]
    assert [row for row in told if not row.startswith("kernel")] == [
        "aten::addmm copied_bytes",
        "aten::addmm kernels",
    ]


def test_new_op_shows_its_device_work() -> None:
    base = cuda_test({"aten::mm": {}})
    head = cuda_test({"aten::mm": {}, "aten::add": {"kernels": 1, "launches": 1}})
    assert [row for row in rows_told(base, head) if not row.startswith("all ")] == [
        "aten::add",
        "kernel of aten::add",
    ]


def test_limits_have_rows_and_advice() -> None:
    head = named("test_a", {"aten::item": 1}, limits={"aten::item.count": 0, "syncs.count": 0})
    (test,) = compared(None, simple_run(head)).tests
    lines = failure_section(test, baseline=None, width=110)
    assert lines == [
        "REGRESSED: aten::item.count is 1 in each step, but the limit is <= 0",
        "",
        "limit             allowed  measured  verdict",
        "aten::item.count  <= 0     1         over",
        "syncs.count       <= 0     nothing   inconclusive: needs cuda capture, which did not run",
        "",
        "intended? raise the limit in the test's marker",
    ]


def test_many_changed_ops_are_cut_short() -> None:
    base = simple_run(named("test_a", {"aten::mul": 1}), name="main")
    head = simple_run(named("test_a", {f"aten::op{i}": 1 for i in range(30)}))
    test = compared(base, head).tests[0]
    assert "  ... and 22 more rows" in failure_section(test, baseline="main", width=100)
    hinting = failure_section(test, baseline="main", width=100, show="opprof show c.json")
    assert "  ... and 22 more rows: opprof show c.json" in hinting
    whole = failure_section(test, baseline="main", width=100, show="")
    shown = {line.split()[0] for line in whole if "aten::op" in line}
    assert shown == {f"aten::op{number}" for number in range(30)}
