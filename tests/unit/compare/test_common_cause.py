"""Which failing tests share a cause, and the numbers of causes."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.documents.compared import MAIN, compared, named
from support.documents.strategies import simple_run

from pytest_opprof.baselines.edited_file import EditedFile
from pytest_opprof.compare.accepting import accepted_of, failed_by, left_over
from pytest_opprof.compare.common_cause import common_causes
from pytest_opprof.compare.comparison import CallLine, Change, Comparison
from pytest_opprof.compare.document import comparison_from_document, comparison_to_document
from pytest_opprof.compare.sessions import Policy, compare_runs
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import UsageError
from pytest_opprof.metrics.host import PYTHON_INSTRUCTIONS
from pytest_opprof.report.causes import cause_words
from pytest_opprof.results.run import TestResult, TreeNode
from pytest_opprof.results.samples import Samples

NOW = datetime(2026, 1, 3, tzinfo=UTC)
FORWARD = "forward, model.py:9"
LOSS = "loss, model.py:13"


def calling(name: str, *ops: tuple[str, int, str], **others: object) -> TestResult:
    """A test of ops that user code calls at these lines, N times a step; the backward copies as well."""
    counts = {op: many for op, many, _ in ops}
    tree = [TreeNode(parent=-1, name=op, count=3 * many, self_ns=0) for op, many, _ in ops]
    test = named(name, counts, tree=tuple(tree), **others)
    places = {op: {place: 3 * many} for op, many, place in ops}
    return replace(test, ops=tuple(replace(row, places=places.get(row.name, {})) for row in test.ops))


def of(*tests: TestResult) -> Comparison:
    base = simple_run(*(calling(test.node_id.rpartition("::")[2], ("aten::add", 1, LOSS)) for test in tests))
    return compared(replace(base, name="main"), simple_run(*tests))


ADD = ("aten::add", 1, LOSS)


def three() -> Comparison:
    return of(
        calling("test_other", ADD, ("aten::mul", 1, LOSS)),
        calling("test_a", ADD, ("aten::clone", 2, FORWARD)),
        calling("test_both", ADD, ("aten::clone", 1, FORWARD), ("aten::mul", 1, LOSS)),
        calling("test_b", ADD, ("aten::clone", 1, FORWARD), ("aten::copy_", 1, FORWARD)),
    )


def names(comparison: Comparison) -> list[list[str]]:
    return [[test.node_id.rpartition("::")[2] for test in one.tests] for one in common_causes(comparison)]


def test_tests_that_fail_at_the_same_lines_share_a_cause() -> None:
    """A test that also fails for a second reason is separate: accepting the first must not accept it."""
    assert names(three()) == [["test_a", "test_b"], ["test_other"], ["test_both"]]
    (first, _, both) = common_causes(three())
    (begun,) = first.beginnings
    assert (begun.change.op, begun.least, begun.most, begun.place) == ("aten::clone", 1, 2, f"in {FORWARD}")
    assert [one.place for one in both.beginnings] == [f"in {FORWARD}", f"in {LOSS}"]


def test_a_line_of_two_functions_begins_a_cause_once() -> None:
    """In Python 3.11, a comprehension is a function of its own."""
    inner = FORWARD.replace("forward", "forward.<locals>.<listcomp>")
    (cause,) = common_causes(of(calling("test_a", ADD, ("aten::mm", 8, inner), ("aten::stack", 1, FORWARD))))
    assert [(one.place, one.most) for one in cause.beginnings] == [(f"in {inner}", 8)]


def test_causes_are_the_same_in_a_document() -> None:
    again = comparison_from_document(comparison_to_document(three()), where="a.json")
    brief = [replace(test, base=None, head=None, changes=test.changes) for test in again.tests]
    assert names(again) == names(three())
    assert names(replace(again, tests=tuple(brief))) == names(three())


def given(test: TestResult, nbytes: int) -> TestResult:
    """The test with N bytes given to its ops."""
    total = {"ops.bytes": Samples.constant(nbytes, steps=test.steps)}
    return replace(test, sources=(*test.sources, "work"), totals={**test.totals, **total})


def test_replaced_ops_are_the_cause_of_a_rise_in_bytes() -> None:
    """Each test has another rise in bytes, which used to make one cause per test."""
    sizes = {"test_small": (100, 180), "test_large": (1_000, 1_400)}
    base = [given(calling(name, ("aten::pow", 1, LOSS)), before) for name, (before, _) in sizes.items()]
    head = [given(calling(name, ("aten::mul", 1, LOSS)), after) for name, (_, after) in sizes.items()]
    comparison = compared(replace(simple_run(*base), name="main"), simple_run(*head))
    (cause,) = common_causes(comparison)
    assert len(cause.tests) == 2
    (begun,) = cause.beginnings
    assert begun.change.line is not None
    assert (begun.change.op, begun.change.line.place) == ("aten::mul", LOSS)
    assert cause_words(cause) == "model.py:13 in loss: aten::pow -> aten::mul"


def test_missing_tests_of_a_file_share_a_cause() -> None:
    comparison = of(calling("test_a", ADD, ("aten::clone", 2, FORWARD)))
    (failed,) = comparison.tests
    missing = [
        replace(failed, node_id=f"{file}.py::test_{at}", verdict=Verdict.MISSING, changes=(), head=None)
        for file in "xy"
        for at in range(2)
    ]
    found = common_causes(replace(comparison, tests=(failed, *missing)))
    assert [(one.number, len(one.tests), one.is_missing) for one in found] == [
        (1, 2, True),
        (2, 2, True),
        (3, 1, False),
    ]


def test_only_accepted_changes_of_a_cause_pass() -> None:
    comparison = three()
    entries = [
        entry
        for test in failed_by(comparison, cause=1)
        for entry in accepted_of(comparison, test, metric=None, reason="so", created=NOW)
    ]
    again = compare_runs(
        simple_run(*(test.base for test in comparison.tests if test.base is not None), name="main"),
        simple_run(*(test.head for test in comparison.tests if test.head is not None)),
        created=NOW,
        opprof_version="0.1.0",
        policy=Policy(accepted={entry.key: entry for entry in entries}),
    )
    verdicts = {test.node_id.rpartition("::")[2]: test.verdict for test in again.tests}
    assert verdicts == {
        "test_a": Verdict.ACCEPTED,
        "test_b": Verdict.ACCEPTED,
        "test_both": Verdict.REGRESSED,
        "test_other": Verdict.REGRESSED,
    }


@pytest.mark.parametrize("cause", [0, -1, 4, 10**9])
def test_unknown_cause_is_one_sentence(cause: int) -> None:
    with pytest.raises(UsageError, match=rf"--cause {cause}: there is no such cause: .* has causes 1 to 3"):
        failed_by(three(), cause=cause)


def test_nothing_to_accept_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="nothing regressed and no test is missing in the comparison of"):
        failed_by(of(calling("test_a", ADD)), cause=None)


def test_a_limit_is_raised_and_not_accepted() -> None:
    limited = of(calling("test_a", ADD, limits={"ops.count": 0}))
    with pytest.raises(UsageError, match="raise that in the test's marker"):
        failed_by(limited, cause=1)
    both = of(calling("test_a", ADD, ("aten::clone", 1, LOSS), limits={"ops.count": 1}))
    found = failed_by(both, cause=None)
    assert left_over(both, found) == [
        f"{found[0]} still fails: it is over a limit of its own: raise that in the test's marker"
    ]


def test_edited_line_precedes_the_function_it_calls() -> None:
    """The filter runs all of its ops again, and the line that calls it twice adds one op of its own."""
    filtering, calling_it = "filter2d, filter.py:129", "ssim, ssim.py:86"
    base = calling("test_a", ("aten::conv2d", 5, filtering), ("aten::add", 1, calling_it))
    head = calling("test_a", ("aten::conv2d", 6, filtering), ("aten::add", 2, calling_it))
    found = []
    files = {"ssim.py": EditedFile(Path("ssim.py"), lines=frozenset({86}))}
    # A base with uncommitted changes may have the edits already.
    for edits, commit in (({}, MAIN), (files, MAIN), (files, replace(MAIN, dirty=True))):
        compared_with_edits = compare_runs(
            simple_run(base, name="main", commit=commit),
            simple_run(head),
            created=NOW,
            opprof_version="0.1.0",
            policy=Policy(edits={MAIN.id: edits}.__getitem__),
        )
        found.append(common_causes(compared_with_edits)[0].beginnings[0].change.op)
    assert found == ["aten::conv2d", "aten::add", "aten::conv2d"]


@pytest.mark.parametrize(
    "reformatted", [frozenset(), frozenset({5})], ids=["only the caller", "a line of the function too"]
)
def test_added_call_is_one_cause_at_its_line(
    reformatted: frozenset[int],
) -> None:
    """The added line calls no op itself, and the function was not edited."""
    scaling, adding, calling_it = "scaled, m.py:5", "scaled, m.py:6", "fit, train.py:9"
    base = calling("test_a", ("aten::mul", 5, scaling), ("aten::add", 5, adding))
    head = replace(
        calling("test_a", ("aten::mul", 6, scaling), ("aten::add", 6, adding)),
        callers={scaling: (calling_it,), adding: (calling_it,)},
    )
    edited = {"train.py": frozenset({9}), "m.py": reformatted}
    files = {file: EditedFile(Path(file), lines=lines) for file, lines in edited.items()}
    policy = Policy(edits={MAIN.id: files}.__getitem__)
    found = compare_runs(
        simple_run(base, name="main", commit=MAIN),
        simple_run(head),
        created=NOW,
        opprof_version="0.1.0",
        policy=policy,
    )
    (cause,) = common_causes(found)
    places = {beginning.place for beginning in cause.beginnings}
    assert places == {"in fit, train.py:9"}
    assert all(change.line is None or change.line.is_edited for change in found.tests[0].changes)


def test_a_rise_in_the_backward_begins_with_the_outermost_op() -> None:
    """A node surrounds the rise, so no row starts it, and the first row may be of an inner op."""

    def run(node: str, *inside: tuple[str, int]) -> TestResult:
        calls = [
            ("aten::empty_strided", -1),
            (f"autograd::engine::evaluate_function: {node}", -1),
            (node, 1),
            *inside,
        ]
        tree = tuple(TreeNode(parent=parent, name=op, count=3, self_ns=0) for op, parent in calls)
        return named("test_a", dict(Counter(op for op, _ in calls)), tree=tree)

    base = run("SquareBackward", ("aten::mul", 2))
    head = run("SquaredBackward", ("aten::mul", 2), ("aten::clone", 2), ("aten::empty_strided", 4))
    comparison = compared(replace(simple_run(base), name="main"), simple_run(head))
    assert comparison.tests[0].regressed[1].op == "aten::empty_strided"
    (cause,) = common_causes(comparison)
    assert [beginning.change.op for beginning in cause.beginnings] == ["aten::clone"]


def test_a_rise_that_fails_nothing_is_marked_as_edited_too(tmp_path: Path) -> None:
    """Ten `mul` became two `addcmul`, in a function that the test ran."""
    (tmp_path / "train.py").write_text("def fit(x):\n    return x.addcmul(x, x)\n")
    place = "fit, train.py:2"
    ran = {PYTHON_INSTRUCTIONS.name: {"fit, train.py": 40}}
    base = replace(calling("test_a", ("aten::mul", 10, place)), functions=ran)
    head = replace(calling("test_a", ("aten::addcmul", 2, place)), functions=ran)
    files = {"train.py": EditedFile(tmp_path / "train.py", lines=frozenset({2}))}
    found = compare_runs(
        simple_run(base, name="main", commit=MAIN),
        simple_run(head),
        created=NOW,
        opprof_version="0.1.0",
        policy=Policy(edits={MAIN.id: files}.__getitem__),
    )
    (test,) = found.tests
    assert test.verdict is Verdict.CHANGED
    assert [change.line.is_edited for change in test.changes if change.line is not None] == [True]


def risen_by(change: Change, rise: int, *, at: CallLine | None = None) -> Change:
    before, after = (Samples.constant(value, steps=1) for value in (100, 100 + rise))
    cause = f"in f, a.py (+{rise})" if at else ""
    return replace(change, base=before, head=after, verdict=Verdict.REGRESSED, line=at, cause=cause)


PYTHON, LIBRARIES, MEMORY = (
    Change(op=None, metric=metric, base=None, head=None, rule="exact", verdict=None)
    for metric in ("python.instructions", "python.library_instructions", "cpu_memory.allocated")
)
LINE = CallLine(function="f", file="a.py", number=5)
OTHER_LINE = CallLine(function="g", file="a.py", number=9)


def failing(*tests: tuple[Change, ...]) -> Comparison:
    comparison = of(*(calling(f"test_{letter}", ADD) for letter in "abcd"[: len(tests)]))
    return replace(
        comparison,
        tests=tuple(
            replace(test, verdict=Verdict.REGRESSED, changes=changes)
            for test, changes in zip(comparison.tests, tests, strict=True)
        ),
    )


@pytest.mark.parametrize("is_certain", [True, False], ids=["certain", "uncertain"])
def test_a_line_is_one_cause_whatever_totals_rose_with_it(is_certain: bool) -> None:
    line = replace(LINE, is_certain=is_certain)
    found = failing(
        (risen_by(PYTHON, 900, at=line), risen_by(LIBRARIES, 300, at=line)),
        (risen_by(LIBRARIES, 400, at=line),),
        (risen_by(MEMORY, 4_096), risen_by(PYTHON, 950, at=line)),
    )
    (cause,) = common_causes(found)
    assert len(failed_by(found, cause=1)) == 3
    perhaps = "" if is_certain else "perhaps "
    assert cause_words(cause) == (
        f"{perhaps}a.py:5 in f: Python instructions, total +900 to +950 a step; "
        "allocated memory, total +4.0 KiB a step"
    )


def test_other_lines_and_totals_alone_are_other_causes() -> None:
    uncertain = replace(LINE, is_certain=False)
    found = failing(
        (risen_by(PYTHON, 900, at=LINE), risen_by(MEMORY, 4_096)),
        (risen_by(PYTHON, 900, at=LINE), risen_by(LIBRARIES, 900, at=OTHER_LINE)),
        (risen_by(PYTHON, 900, at=uncertain),),
        (risen_by(MEMORY, 4_096),),
    )
    assert len(common_causes(found)) == 4
