"""Views launch and copy nothing: they are not ops, and a test that differs only in them is CHANGED."""

from dataclasses import dataclass, replace

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

from pytest_opprof.compare.comparison import TestComparison
from pytest_opprof.compare.document import read_comparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import VIEWS_COUNT
from pytest_opprof.results.files import read_run, write_run
from pytest_opprof.results.run import OpRow, TestResult

pytestmark = pytest.mark.slow

TESTS = """\
    import pytest
    import torch

    pytestmark = pytest.mark.profile(warmup=2, active=2)
    X, T = torch.ones(8, 16), torch.ones(16, 8).t()
    NEW = False

    def leaf(): return torch.ones(8, 16, requires_grad=True)

    def test_reshape(): (X.reshape(16, 8) if NEW else X.view(16, 8)).sum()

    def test_chunk():
        a, b = X.chunk(2) if NEW else (X[0:4], X[4:8])
        a + b

    def test_views_added(): (X.unsqueeze(0).transpose(1, 2).detach() if NEW else X).sum()

    def test_nothing_to_copy(): (X.contiguous().to(torch.float32) if NEW else X).sum()

    def test_views_removed(): (X if NEW else X.unsqueeze(0).squeeze(0)).sum()

    def test_backward():
        x = leaf()
        (x * 2 if not NEW else (x * 2).reshape(16, 8).t()).sum().backward()

    def test_two_gradients():
        x = leaf()
        ((x * 2) + (x.reshape(16, 8).reshape(8, 16) if NEW else x) * 3 + x).sum().backward()

    def test_expand_for_copy(): (X.expand(2, 8, 16) if NEW else X.repeat(2, 1, 1)).sum()

    def test_contiguous(): (T.contiguous() if NEW else T).sum()

    def test_copying_reshape(): (T.reshape(128) if NEW else X.reshape(128)).sum()

    def test_in_place(): (X.add_(0) if NEW else X).sum()

    def test_copying_to(): (X.to(torch.float64) if NEW else X.to(torch.float32)).sum()

    @pytest.mark.profile(gates={"views.count": "exact"})
    def test_gated(): (X.view(-1) if NEW else X).sum()

    @pytest.mark.profile(limits={"views.count": 2})
    def test_limited(): (X.view(-1).view(8, 16) if NEW else X.view(-1)).sum()
"""
FREE = (
    "test_reshape",
    "test_chunk",
    "test_views_added",
    "test_nothing_to_copy",
    "test_views_removed",
    "test_backward",
    "test_two_gradients",
)
# each with the op that its failure names
WORSE = {
    "test_contiguous": "aten::clone",
    "test_copying_reshape": "aten::clone",
    "test_in_place": "aten::add_",
    "test_copying_to": "aten::_to_copy",
    "test_gated": "views",
    "test_limited": "views.count is 3",
}


@dataclass(frozen=True, kw_only=True)
class Story:
    """A project whose baseline is older than its tests."""

    project: Project
    saved: Session
    compared: Session

    def judged(self, name: str) -> TestComparison:
        """A test's comparison."""
        return _judged(self.project, name)


def _judged(project: Project, name: str) -> TestComparison:
    comparison = read_comparison(project.folder / "compared.json")
    (found,) = (test for test in comparison.tests if test.node_id.endswith(f"::{name}"))
    return found


def _row(test: TestResult, name: str) -> OpRow:
    (found,) = (row for row in test.ops if row.name == name)
    return found


@pytest.fixture(scope="module")
def story(make_project: MakeProject, torch_installed: None) -> Story:
    project = make_project("views")
    project.write("test_it.py", TESTS)
    saved = project.pytest("--opprof-save=main")
    project.replace("test_it.py", "NEW = False", "NEW = True")
    compared = project.pytest("--opprof-baseline=main", "--opprof-report=json:compared.json")
    return Story(project=project, saved=saved, compared=compared)


@pytest.mark.parametrize("name", FREE)
def test_view_only_difference_is_changed(story: Story, name: str) -> None:
    before, after = story.saved.result(name).totals, story.compared.result(name).totals
    assert story.compared.outcomes[name] == "passed"
    assert story.judged(name).verdict is Verdict.CHANGED
    assert before["ops.count"] == after["ops.count"]
    assert before["views.count"] != after["views.count"]


@pytest.mark.parametrize("name", FREE)
def test_the_summary_names_the_views(story: Story, name: str) -> None:
    before, after = (side.result(name).totals["views.count"].low for side in (story.saved, story.compared))
    many = abs(after - before)
    word = "more" if after > before else "fewer"
    told = f"{many} {word} {'view' if many == 1 else 'views'} in each step than main"
    assert story.judged(name).reason == f"{told}: views launch and copy nothing"
    total = story.judged(name).changes[0]
    assert (total.metric, total.verdict, total.rule) == ("views.count", Verdict.CHANGED, "")


@pytest.mark.parametrize(("name", "named"), WORSE.items(), ids=WORSE)
def test_added_copies_and_writes_fail(story: Story, name: str, named: str) -> None:
    assert story.compared.outcomes[name] == "failure"
    assert story.judged(name).verdict is Verdict.REGRESSED
    assert named in story.compared.failures[name]


@pytest.mark.parametrize("name", [name for name, named in WORSE.items() if "::" in named])
def test_views_are_not_a_reason_for_a_failure(story: Story, name: str) -> None:
    test = story.compared.result(name)
    regressed = [change for change in story.judged(name).changes if change.verdict is Verdict.REGRESSED]
    named = {change.op for change in regressed if change.op and change.metric == "count"}
    rows = [_row(test, op) for op in named]
    assert rows
    assert all(row.not_views.low for row in rows)


def test_a_copy_that_became_a_view_is_an_improvement(story: Story) -> None:
    assert story.judged("test_expand_for_copy").verdict is Verdict.IMPROVED


def test_copying_op_is_not_a_view(story: Story) -> None:
    viewed, copied = (side.result("test_copying_reshape") for side in (story.saved, story.compared))
    assert _row(viewed, "aten::reshape").not_views.high == 0
    assert _row(copied, "aten::reshape").not_views.low == 1


def test_backward_nodes_are_classified_by_their_ops(story: Story) -> None:
    test = story.compared.result("test_backward")
    for node in ("ViewBackward0", "TBackward0"):
        assert _row(test, node).not_views.high == 0
        assert _row(test, f"autograd::engine::evaluate_function: {node}").not_views.high == 0
    for node in ("MulBackward0", "torch::autograd::AccumulateGrad"):
        assert _row(test, node).not_views.low == 1


def test_counts_do_not_depend_on_recording_options(story: Story, project: Project) -> None:
    more = "profile_memory=True, record_shapes=True, with_stack=True, with_flops=True"
    project.write("test_it.py", TESTS.replace("NEW = False", "NEW = True"))
    project.replace("test_it.py", "warmup=2, active=2", f"warmup=2, active=2, {more}")
    session = project.pytest("--opprof-capture=ranges,ops,python")
    for test in story.compared.run.tests:
        again = session.result(test.node_id.rpartition("::")[2])
        for name in ("ops.count", "views.count"):
            assert again.totals[name] == test.totals[name], test.node_id


@pytest.fixture(scope="module")
def beside_older(story: Story, make_project: MakeProject) -> Story:
    """The same against a baseline of a release that counted views as ops."""
    project = make_project("older")
    (stored,) = (story.project.folder / ".opprof" / "main").glob("*.json*")
    older = project.folder / ".opprof" / "main" / stored.name
    older.parent.mkdir(parents=True)
    run = read_run(stored)
    write_run(older, replace(run, tests=tuple(_older(test) for test in run.tests)))
    project.write("test_it.py", TESTS)
    same = project.pytest("--opprof-baseline=main", "--opprof-report=json:same.json")
    project.replace("test_it.py", "NEW = False", "NEW = True")
    compared = project.pytest("--opprof-baseline=main", "--opprof-report=json:compared.json")
    return Story(project=project, saved=same, compared=compared)


def _older(test: TestResult) -> TestResult:
    totals = dict(test.totals)
    totals["ops.count"] = totals["ops.count"].plus(totals.pop(VIEWS_COUNT.name))
    ops = tuple(
        replace(row, metrics={name: value for name, value in row.metrics.items() if name != "views"})
        for row in test.ops
    )
    return replace(test, totals=totals, ops=ops)


def test_unchanged_code_passes_beside_an_older_baseline(beside_older: Story) -> None:
    session = beside_older.saved
    assert session.exit_code == 0
    session.lines.fnmatch_lines(["*counts views as ops: this run decides which ops are views. Save it again"])
    same = read_comparison(beside_older.project.folder / "same.json")
    assert {test.verdict for test in same.tests} == {Verdict.PASS}


@pytest.mark.parametrize("name", [*FREE, "test_expand_for_copy"])
def test_views_are_free_beside_an_older_baseline(beside_older: Story, name: str) -> None:
    assert beside_older.judged(name).verdict is Verdict.CHANGED


@pytest.mark.parametrize("name", WORSE)
def test_copies_fail_beside_an_older_baseline(beside_older: Story, name: str) -> None:
    assert beside_older.judged(name).verdict is Verdict.REGRESSED
