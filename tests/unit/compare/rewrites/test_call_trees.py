"""One side's call tree, before it is aligned with the other side's."""

from dataclasses import replace

from support.documents.strategies import simple_test

from pytest_opprof.compare.rewrites.alignment import ROOT, CallTree
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import TreeNode

TEST = simple_test({"aten::linear": 1, "aten::addmm": 1})


def paths_of(*nodes: tuple[str, int]) -> list[tuple[str, list[str]]]:
    tree = CallTree(
        replace(
            TEST, tree=tuple(TreeNode(name=name, parent=parent, count=1, self_ns=0) for name, parent in nodes)
        ),
        weight=1,
    )
    return [(name, list(children)) for name, children in zip(tree.names, tree.children, strict=True)]


def test_callees_of_the_first_op_are_inside_it() -> None:
    assert paths_of(("aten::linear", -1), ("aten::addmm", 0)) == [
        ("", ["aten::linear"]),
        ("aten::linear", ["aten::addmm"]),
        ("aten::addmm", []),
    ]


def test_steps_callees_belong_to_the_test() -> None:
    paths = paths_of((STEP_NAME, -1), ("aten::linear", 0))
    assert paths[ROOT] == ("", ["aten::linear"])
