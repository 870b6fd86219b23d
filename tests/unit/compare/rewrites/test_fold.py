"""Replaced ops are one change: each rule, and cases that no rule covers."""

import json
from dataclasses import replace

import pytest
from support.documents.strategies import Call, calling, cuda_test, simple_run

from pytest_opprof.compare.comparison import Change, TestComparison
from pytest_opprof.compare.document import comparison_from_document, comparison_to_document
from pytest_opprof.compare.phrases import name_of
from pytest_opprof.compare.sessions import compare_runs, compare_test
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.kinds import OpKind
from pytest_opprof.results.run import OpRow, TestResult, TreeNode
from pytest_opprof.results.samples import Samples
from pytest_opprof.results.schema import Contract, validate

CHANGED, IMPROVED, REGRESSED = Verdict.CHANGED, Verdict.IMPROVED, Verdict.REGRESSED


def compared(base: TestResult, head: TestResult) -> TestComparison:
    return compare_test(head, base, base=simple_run(base, name="main"), head=simple_run(head))


def of_ops(found: TestComparison) -> list[Change]:
    return [change for change in found.changes if change.op is not None]


def told(found: TestComparison) -> dict[str, Verdict | None]:
    """The rows of ops: the wording of each change, and its verdict."""
    return {name_of(change): change.verdict for change in of_ops(found)}


def forward(*inside: Call) -> Call:
    return ("forward", 1, *inside)


MUL, ADD = ("aten::mul", 10), ("aten::add", 10)
ADDMM = ("aten::addmm", 4)
LINEAR = ("aten::linear", 4, ("aten::t", 4), ADDMM)

ONE_ROW = {
    "an op renamed": (
        [forward(MUL)],
        [forward(("aten::multiply", 10))],
        ("aten::mul -> aten::multiply", CHANGED, "renamed in range 'forward'", (10, 10)),
    ),
    "a range renamed with all inside": (
        [forward(MUL, LINEAR)],
        [("fwd", 1, MUL, LINEAR)],
        ("forward -> fwd", CHANGED, "renamed", (1, 1)),
    ),
    "two ops fused": (
        [forward(MUL, ADD)],
        [forward(("aten::addcmul", 10))],
        ("aten::mul + aten::add -> aten::addcmul", CHANGED, "fused in range 'forward'", (20, 10)),
    ),
    "many calls fused into one": (
        [MUL],
        [("aten::addcmul", 1)],
        ("aten::mul -> aten::addcmul", CHANGED, "fused", (10, 1)),
    ),
    "a fusion of some calls": (
        [("aten::mul", 30), ("aten::add", 10), ("aten::relu", 5)],
        [("aten::mul", 20), ("aten::addcmul", 10), ("aten::relu", 5)],
        ("aten::add + aten::mul -> aten::addcmul", CHANGED, "fused", (20, 10)),
    ),
    "an op with others inside replaced by one": (
        [forward(LINEAR)],
        [forward(("mine::linear", 4))],
        ("aten::linear -> mine::linear", CHANGED, "fused in range 'forward', with 2 more ops inside", (12, 4)),
    ),
    "a wrapper taken away": (
        [forward(("aten::linear", 4, ADDMM))],
        [forward(ADDMM)],
        ("aten::linear -> aten::addmm", IMPROVED, "unwrapped in range 'forward'", (8, 4)),
    ),
    "linear to addmm": (
        [forward(LINEAR)],
        [forward(ADDMM)],
        ("aten::linear -> aten::addmm", IMPROVED, "unwrapped in range 'forward', with 1 more op inside", (12, 4)),
    ),
    "a wrapper put around": (
        [forward(MUL, ADDMM, ADD)],
        [forward(MUL, ("aten::linear", 4, ADDMM), ADD)],
        ("aten::addmm -> aten::linear", REGRESSED, "wrapped in range 'forward'", (4, 8)),
    ),
    "a wrapper put around ops on both sides of another": (
        [forward(MUL, ADDMM, ADD)],
        [forward(ADDMM, ("my::loss", 1, MUL, ADD))],
        ("aten::mul + aten::add -> my::loss", REGRESSED, "wrapped in range 'forward'", (20, 21)),
    ),
    "a range put around": (
        [MUL, ADDMM],
        [("block", 1, MUL, ADDMM)],
        ("aten::mul + aten::addmm -> block", CHANGED, "wrapped", (14, 15)),
    ),
    "an op split": (
        [forward(ADDMM, MUL)],
        [forward(("aten::mm", 4), ("aten::sub", 4), MUL)],
        ("aten::addmm -> aten::mm + aten::sub", REGRESSED, "split in range 'forward'", (4, 8)),
    ),
    "an op removed with all inside": (
        [forward(MUL, LINEAR)],
        [forward(MUL)],
        ("aten::linear", IMPROVED, "gone in range 'forward', with 2 more ops inside", (12, 0)),
    ),
    "a renaming at many places": (
        [("first", 1, MUL), ("second", 1, ("aten::mul", 3))],
        [("first", 1, ("aten::multiply", 10)), ("second", 1, ("aten::multiply", 3))],
        ("aten::mul -> aten::multiply", CHANGED, "renamed at 2 places", (13, 13)),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("base", "head", "row"), ONE_ROW.values(), ids=ONE_ROW.keys())
def test_replaced_ops_are_one_row(
    base: list[Call], head: list[Call], row: tuple[str, Verdict, str, tuple[int, int]]
) -> None:
    found = compared(calling(*base), calling(*head, steps=2))
    name, verdict, cause, counts = row
    (change,) = of_ops(found)
    assert name_of(change) == name
    sides = tuple(side.low if side else 0 for side in (change.base, change.head))
    assert (change.verdict, change.cause, sides) == (verdict, cause, counts)


@pytest.mark.parametrize(("base", "head", "row"), ONE_ROW.values(), ids=ONE_ROW.keys())
def test_rewrites_survive_the_document(base: list[Call], head: list[Call], row: object) -> None:
    comparison = compare_runs(
        simple_run(calling(*base)),
        simple_run(calling(*head)),
        created=simple_run().created,
        opprof_version="0.1",
    )
    document = json.loads(json.dumps(comparison_to_document(comparison)))
    validate(document, Contract.COMPARISON, where="x.json")
    assert comparison_from_document(document, where="x.json") == comparison


SEVERAL_ROWS = {
    "two renamed in order": (
        [MUL, ("aten::add", 3)],
        [("my::mul", 10), ("my::add", 3)],
        {"aten::mul -> my::mul": CHANGED, "aten::add -> my::add": CHANGED},
    ),
    "a renaming inside a renaming": (
        [forward(LINEAR)],
        [("fwd", 1, ("my::linear", 4, ("my::t", 4), ADDMM))],
        {"forward -> fwd": CHANGED, "aten::linear -> my::linear": CHANGED, "aten::t -> my::t": CHANGED},
    ),
    "a renaming beside a new op": (
        [forward(MUL), ADD],
        [forward(("aten::multiply", 10)), ADD, ("aten::relu", 1)],
        {"aten::mul -> aten::multiply": CHANGED, "aten::relu": REGRESSED},
    ),
    "a wrapper around ops of which one was renamed": (
        [MUL, ADD, ADDMM],
        [("block", 1, MUL, ADD, ("aten::mm", 4))],
        {"aten::mul + aten::add -> block": CHANGED, "aten::addmm -> aten::mm": CHANGED},
    ),
    "other counts than a whole multiple": (
        [forward(MUL, ("aten::add", 3))],
        [forward(("aten::addcmul", 4))],
        {"aten::addcmul": CHANGED, "aten::mul": IMPROVED, "aten::add": IMPROVED},
    ),
    "several for several that are not alike": (
        [forward(MUL, ADD, ADDMM)],
        [forward(("aten::a", 5), ("aten::b", 5))],
        {
            "aten::a": CHANGED,
            "aten::b": CHANGED,
            "aten::mul": IMPROVED,
            "aten::add": IMPROVED,
            "aten::addmm": IMPROVED,
        },
    ),
    "at other places": (
        [forward(MUL), ("backward", 1, ADD)],
        [forward(), ("backward", 1, ADD, ("aten::multiply", 10))],
        {"aten::multiply": CHANGED, "aten::mul": IMPROVED},
    ),
    "a part of the difference": (
        [forward(MUL), ("backward", 1, MUL, ADD)],
        [forward(("aten::multiply", 10)), ("backward", 1, ("aten::mul", 7), ADD)],
        {"aten::multiply": CHANGED, "aten::mul": IMPROVED},
    ),
    "one of both does less and one more": (
        [MUL, ("aten::add", 10)],
        [("aten::mul", 5), ("aten::add", 15)],
        {"aten::mul": IMPROVED, "aten::add": CHANGED},
    ),
}


@pytest.mark.parametrize(("base", "head", "rows"), SEVERAL_ROWS.values(), ids=SEVERAL_ROWS.keys())
def test_ambiguous_ops_stay_separate(base: list[Call], head: list[Call], rows: dict[str, Verdict]) -> None:
    assert told(compared(calling(*base), calling(*head))) == rows


def test_watched_op_keeps_its_row_and_regresses() -> None:
    found = compared(calling(forward(("my::copy", 2), MUL)), calling(forward(("aten::clone", 2), MUL)))
    assert found.verdict is REGRESSED
    assert told(found) == {"my::copy -> aten::clone": CHANGED, "aten::clone": REGRESSED}


def test_asked_for_op_keeps_its_row() -> None:
    base, head = calling(forward(MUL, ADD)), calling(forward(("aten::addcmul", 10)))
    strict = replace(head, gates={"aten::addcmul.count": "exact"})
    found = compared(base, strict)
    assert found.verdict is REGRESSED
    assert told(found)["aten::addcmul"] is REGRESSED


def test_python_calls_do_not_part_two_trees() -> None:
    def with_calls(test: TestResult, line: int) -> TestResult:
        """The same ops, all called by one function from one line."""
        call = f"model.py({line}): forward"
        tree = [TreeNode(parent=-1, name=call, count=3, self_ns=0)]
        tree += [replace(node, parent=node.parent + 1) for node in test.tree]
        zero = Samples.constant(0, steps=3)
        row = OpRow(name=call, kind=OpKind.CALL, metrics={"count": zero})
        return replace(test, ops=(*test.ops, row), tree=tuple(tree))

    base, head = calling(forward(MUL, ADD)), calling(forward(("aten::addcmul", 10)))
    found = compared(with_calls(base, 41), with_calls(head, 57))
    assert told(found) == {"aten::mul + aten::add -> aten::addcmul": CHANGED}


def test_varying_counts_stay_separate() -> None:
    base, head = calling(forward(MUL)), calling(forward(("aten::multiply", 10)))
    (row,) = (row for row in head.ops if row.name == "aten::multiply")
    varying = row.with_metrics(count=Samples.of([9, 10, 11]))
    rows = tuple(varying if one is row else one for one in head.ops)
    assert all(change.rewrite is None for change in compared(base, replace(head, ops=rows)).changes)


def test_other_metrics_follow_the_new_name() -> None:
    def test_of(name: str, bytes_copied: int) -> TestResult:
        work = {"copies": 1, "copied_bytes": bytes_copied}
        tree = (TreeNode(parent=-1, name=name, count=3, self_ns=0),)
        return cuda_test({name: work}, tree=tree)

    assert told(compared(test_of("load", 64), test_of("fetch", 64))) == {"load -> fetch": CHANGED}
    found = compared(test_of("load", 64), test_of("fetch", 96))
    (more,) = (change for change in of_ops(found) if change.metric == "copied_bytes")
    assert found.verdict is REGRESSED
    assert (name_of(more), more.rise, more.verdict) == ("load -> fetch", 32, REGRESSED)


def test_kernels_follow_the_op_that_launches_them() -> None:
    def test_of(kernels: dict[str, str], *calls: Call) -> TestResult:
        bare = calling(*calls)
        rows = [
            replace(
                bare.ops[0].with_metrics(count=Samples.constant(10, steps=3)),
                name=name,
                kind=OpKind.KERNEL,
                parent_op=by,
            )
            for name, by in kernels.items()
        ]
        return replace(
            bare,
            sources=("ranges", "ops", "cuda"),
            ops=(*bare.ops, *rows),
            totals={**bare.totals, "kernels.count": Samples.constant(10 * len(rows), steps=3)},
        )

    base = test_of({"k_mul": "aten::mul", "k_add": "aten::add"}, MUL, ADD)
    assert told(compared(base, test_of({"k_fused": "aten::addcmul"}, ("aten::addcmul", 10)))) == {
        "aten::mul + aten::add -> aten::addcmul": CHANGED,
        "k_add + k_mul -> k_fused": CHANGED,
    }
    assert told(compared(base, test_of({"k_mul2": "aten::mul", "k_add": "aten::add"}, MUL, ADD))) == {
        "k_mul -> k_mul2": CHANGED
    }
    elsewhere = test_of({"k_mul2": "aten::add", "k_add": "aten::add"}, MUL, ADD)
    assert told(compared(base, elsewhere)) == {"k_mul": IMPROVED, "k_mul2": CHANGED}


def test_fewer_folded_ops_improve() -> None:
    gone = compared(calling(forward(MUL, LINEAR)), calling(forward(MUL)))
    assert gone.verdict is IMPROVED
    assert gone.reason.startswith("12 fewer ops in each step than main")


def test_op_moved_elsewhere_is_not_a_rename() -> None:
    base = calling(forward(MUL), ("backward", 1, ADD))
    head = calling(forward(("aten::multiply", 10)), ("backward", 1, ADD, MUL))
    assert told(compared(base, head)) == {"aten::multiply": REGRESSED}


def test_op_inside_a_new_op_is_not_gone() -> None:
    base = calling(forward(("aten::mul", 1)))
    head = calling(forward(("my::op", 1, ("aten::mul", 1)), ("aten::relu", 1)))
    assert told(compared(base, head)) == {"my::op": REGRESSED, "aten::relu": REGRESSED}


def test_folded_parts_are_not_counted_twice() -> None:
    """An op that replaces a watched one and wraps another: the watched one has its own row."""
    rest = ("aten::mul", 1), ("aten::addmm", 1), ("aten::relu", 1)
    base = calling(("aten::item", 1, ("aten::mul", 1)), *rest)
    head = calling(("my::op", 1, ("my::op", 1, ("aten::mul", 1))), *rest)
    assert told(compared(base, head)) == {"my::op": REGRESSED, "aten::item": IMPROVED}


def test_in_place_op_is_separate_from_new_ops() -> None:
    conv, more = ("aten::conv1d", 4), ("aten::conv1d", 8)
    base = calling(forward(ADD, ("aten::relu", 4), conv))
    head = calling(forward(("aten::add_", 10), ("aten::slice", 10), ("aten::relu", 4), more))
    assert told(compared(base, head)) == {
        "aten::slice": REGRESSED,
        "aten::conv1d": REGRESSED,
        "aten::add -> aten::add_": CHANGED,
    }


def test_compiled_functions_are_known_by_their_compilation() -> None:
    """One more function is compiled before another one, which is the third in the process now."""
    once, new, again, now = (f"Torch-Compiled Region: {number}" for number in ("0/0", "1/0", "1/1", "2/1"))
    base = calling(forward((once, 1), (again, 2, ("aten::sin", 2))))
    head = calling(forward((once, 1), (new, 1, ("aten::cos", 1)), (now, 2, ("aten::sin", 2))))
    assert told(compared(base, head)) == {
        f"{again} -> {now}": CHANGED,
        new: CHANGED,  # a range that is new
        "aten::cos": REGRESSED,
    }
