"""Known losses of a test's numbers."""

from dataclasses import replace

import pytest
from support.documents.strategies import simple_test

from pytest_opprof.data_loss import calls_outside_tree, losses_of_test
from pytest_opprof.results.run import CaptureStats, TestResult, TreeNode

TREE = (
    TreeNode(parent=-1, name="forward", count=2, self_ns=0),
    TreeNode(parent=0, name="aten::mul", count=5, self_ns=0),
    TreeNode(parent=-1, name="aten::mul", count=3, self_ns=0),
)
TEST = replace(simple_test({"forward": 1, "aten::mul": 4}, steps=2), tree=TREE)


def test_complete_test_has_no_losses() -> None:
    assert list(losses_of_test(TEST)) == []
    assert calls_outside_tree(TEST) == 0


def test_each_loss_has_its_sentence() -> None:
    capture = CaptureStats(
        dropped=1, truncated=True, names_overflowed=2, sampled_ppm=10_000, device_dropped=3
    )
    sentences = list(losses_of_test(replace(TEST, capture=capture, ops_omitted=4)))
    assert [sentence.partition(" ")[0] for sentence in sentences] == [
        "Events",
        "The",
        "Too",
        "Sampled:",
        "Rows",
        "CUDA",
    ]


@pytest.mark.parametrize(
    ("test", "calls"),
    [
        (replace(TEST, tree=TREE[:2]), 3),
        (replace(TEST, tree=()), 0),
        (replace(TEST, tree=TREE[:2], unstable=("aten::mul.count",)), 0),
        (replace(TEST, tree=TREE[:2], ops=tuple(replace(row, background=True) for row in TEST.ops)), 0),
    ],
    ids=["a path that was cut", "no tree at all", "a count that nobody knows", "beside the steps"],
)
def test_calls_that_the_tree_has_no_room_for_are_counted(test: TestResult, calls: int) -> None:
    assert calls_outside_tree(test) == calls
