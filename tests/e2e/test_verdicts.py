"""A baseline, a change, and every verdict: one save and one comparison, seen from all sides."""

from dataclasses import dataclass

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

from pytest_opprof.results.files import read_run
from pytest_opprof.results.run import Run, TestResult

# The number of processes so far: 1 saves, 2 certifies, 3 compares.
CONFTEST = """\
    from pathlib import Path
    import pytest

    def pytest_configure(config):
        path = config.rootpath / "processes"
        number = int(path.read_text()) + 1 if path.exists() else 1
        path.write_text(str(number))
        config.process = number

    @pytest.fixture
    def process(request):
        return request.config.process
"""

BASE = """\
    import pytest
    from pytest_opprof import record_function

    pytestmark = pytest.mark.profile(warmup=1, active=2)

    def work(times=1, name="work"):
        for _ in range(times):
            with record_function(name):
                pass

    STEPS, LATER, MEASURED = [], [], []

    def test_same(): work()
    def test_more(): work(2)
    def test_fewer(): work(2)
    def test_named(): work(2)
    def test_replaced(): work(10, "mul")
    def test_skipped_now(): work()
    def test_fails_now(): work()
    def test_removed(): work()
    def test_other_steps(): work()

    def test_varies():
        STEPS.append(0)
        work(len(STEPS))

    def test_varies_now(): work(1)

    def test_by_process(process): work(process)

    def test_first_of_two():
        work(1 if "second" not in MEASURED else 2)
        MEASURED.append("first")

    def test_second_of_two():
        work()
        MEASURED.append("second")

    def test_fails_in_another_process(process):
        work()
        assert process != 2

    def test_fails(): raise AssertionError
    def test_cannot_be_repeated(tmp_path): (tmp_path / "d").mkdir()

    def test_slow_start(): work()

    @pytest.mark.profile(warmup=1, active=2, gates={"ranges.count": "off"})
    def test_gate_off(): work()

    @pytest.mark.profile(warmup=1, active=2, gates={"ranges.count": "advisory"})
    def test_gate_advisory(): work()

    @pytest.mark.profile(warmup=1, active=2, gates={"inner.count": "exact"})
    def test_gate_exact(): work(4, "outer"); work(1, "inner")

    @pytest.mark.profile(warmup=1, active=2, gates={"ranges.count": "20%"})
    def test_gate_tolerance(): work(10)

    @pytest.mark.profile(warmup=1, active=2, gates={"wor?.self_cpu_time_total": "0%"})
    def test_gate_on_time(): work()

    @pytest.mark.profile(warmup=1, active=2, limits={"work.count": "<= 2", "ranges.count": "< 9"})
    def test_limit(): work()
"""

CHANGES = {
    "def test_more(): work(2)": "def test_more(): work(3)",
    "def test_fewer(): work(2)": "def test_fewer(): work()",
    "def test_named(): work(2)": "def test_named(): work(2); work(1, 'named')",
    'def test_replaced(): work(10, "mul")': 'def test_replaced(): work(1, "addcmul")',
    "def test_skipped_now(): work()": "def test_skipped_now(): work(2); pytest.skip('not now')",
    "def test_fails_now(): work()": "def test_fails_now(): work(2); pytest.fail('no')",
    "def test_removed(): work()": "def test_added(): work()",
    "def test_other_steps()": "@pytest.mark.profile(warmup=0, active=5)\ndef test_other_steps()",
    "def test_varies_now(): work(1)": "def test_varies_now(): STEPS.append(0); work(len(STEPS))",
    # Twice the work, but only in the process's first three calls.
    "def test_slow_start(): work()": "def test_slow_start(): LATER.append(0); work(1 + (len(LATER) <= 3))",
    "def test_gate_off(): work()": "def test_gate_off(): work(3)",
    "def test_gate_advisory(): work()": "def test_gate_advisory(): work(3)",
    'work(4, "outer"); work(1, "inner")': 'work(2, "outer"); work(2, "inner")',
    "def test_gate_tolerance(): work(10)": "def test_gate_tolerance(): work(12)",
    "def test_limit(): work()": "def test_limit(): work(3)",
}


@dataclass(frozen=True, kw_only=True)
class Story:
    """A save, a change and a comparison."""

    project: Project
    saved: Session
    base: Run
    compared: Session

    def stored(self, name: str) -> TestResult | None:
        """A test's result in the baseline."""
        return self.base.test(f"test_it.py::{name}")

    def verdict(self, name: str) -> str:
        """The verdict beside a test in the summary."""
        _, _, summary = self.compared.stdout.partition("= opprof =")
        (found,) = (line.split()[1] for line in summary.splitlines() if line.startswith(f"{name} "))
        return found


@pytest.fixture(scope="module")
def story(make_project: MakeProject) -> Story:
    project = make_project("verdicts")
    project.write("conftest.py", CONFTEST)
    project.write("test_it.py", BASE)
    saved = project.pytest("--opprof-save=main")
    (path,) = project.stored()
    for before, after in CHANGES.items():
        project.replace("test_it.py", before, after)
    compared = project.pytest("--opprof-baseline=main", "-v")
    return Story(project=project, saved=saved, base=read_run(path), compared=compared)


VERDICTS = {
    "test_same": "PASS",
    "test_more": "REGRESSED",
    "test_fewer": "IMPROVED",
    "test_named": "CHANGED",
    "test_replaced": "CHANGED",
    "test_removed": "MISSING",
    "test_added": "NEW",
    "test_other_steps": "PASS",
    "test_varies": "measured",
    "test_varies_now": "INCONCLUSIVE",
    "test_by_process": "measured",
    "test_first_of_two": "measured",
    "test_cannot_be_repeated": "ERROR",
    "test_slow_start": "INCONCLUSIVE",
    "test_gate_off": "CHANGED",
    "test_gate_advisory": "CHANGED",
    "test_gate_exact": "REGRESSED",
    "test_gate_tolerance": "CHANGED",
    "test_gate_on_time": "PASS",
    "test_limit": "REGRESSED",
}


@pytest.mark.parametrize(("name", "verdict"), VERDICTS.items(), ids=VERDICTS)
def test_each_change_gets_its_verdict(story: Story, name: str, verdict: str) -> None:
    assert story.verdict(name) == verdict


def test_only_failed_gates_fail_tests(story: Story) -> None:
    failed = {name for name, outcome in story.compared.outcomes.items() if outcome == "failure"}
    by_gate = {"test_more", "test_gate_exact", "test_limit", "test_varies_now", "test_slow_start"}
    assert failed == {*by_gate, "test_fails", "test_fails_now"}
    assert story.compared.exit_code == pytest.ExitCode.TESTS_FAILED


def test_failures_come_first_in_the_summary(story: Story) -> None:
    _, _, summary = story.compared.stdout.partition("= opprof =")
    _, _, table = summary.partition("\ntest    ")
    verdicts = [line.split()[1] for line in table.splitlines()[1 : len(VERDICTS) + 1]]
    order = [
        "ERROR",
        "REGRESSED",
        "MISSING",
        "INCONCLUSIVE",
        "CHANGED",
        "IMPROVED",
        "NEW",
        "PASS",
        "measured",
    ]
    assert verdicts == sorted(verdicts, key=order.index)
    story.compared.lines.fnmatch_lines(
        [
            "1 in error, 3 regressed, 1 missing, 2 inconclusive, 5 changed, 1 improved, 1 new, 5 passed, "
            "3 measured * nothing dropped * 2 tests failed, not compared * 1 other test not run"
        ]
    )


def test_failure_names_the_op_and_the_next_step(story: Story) -> None:
    told = pytest.LineMatcher(story.compared.failures["test_more"].splitlines())
    told.fnmatch_lines(
        [
            "REGRESSED: 1 more range in each step than main (same in 2 of 2 steps, certified in 2 processes)",
            "",
            "test_it.py:8 in work",
            "    with record_function(name):",
            "  work  2 -> 3  +1",
            "",
            "all ranges  2 -> 3  +1",
            "",
            "advisory: self CPU * -> * not gated)",
            'intended? opprof accept test_it.py::test_more --reason "..."',
        ]
    )
    limit = story.compared.failures["test_limit"]
    assert "work.count is 3 in each step, but the limit is <= 2" in limit
    assert "intended? raise the limit in the test's marker" in limit


def test_only_passed_tests_are_saved(story: Story) -> None:
    assert story.stored("test_fails") is None
    assert story.stored("test_cannot_be_repeated") is None
    assert len(story.base.tests) == 22
    assert "opprof: 2 of 24 tests not saved: they did not pass or were not measured" in story.saved.told


def test_saved_values_are_certified_in_a_second_process(story: Story) -> None:
    stable = story.stored("test_same")
    assert stable is not None
    assert (stable.processes, stable.unstable) == (2, ())


@pytest.mark.parametrize(("name", "seen"), [("test_by_process", (1, 2)), ("test_first_of_two", (1, 2))])
def test_process_or_order_dependent_counts_are_kept_as_a_range(
    story: Story, name: str, seen: tuple[int, int]
) -> None:
    test = story.stored(name)
    assert test is not None
    assert test.unstable == ("ranges.count", "python.instructions", "work.count")
    assert (test.totals["ranges.count"].low, test.totals["ranges.count"].high) == seen


def test_failure_in_the_second_process_prevents_certification(story: Story) -> None:
    test = story.stored("test_fails_in_another_process")
    assert test is not None
    assert test.processes == 1
    sentence = (
        "not certified in 2 processes, because a fresh process could not measure it: "
        "test_it.py::test_fails_in_another_process"
    )
    assert f"opprof: {sentence}" in story.saved.told
    assert story.base.notes == (sentence,)


def test_a_second_look_comes_before_a_failure(story: Story) -> None:
    once = story.compared.result("test_slow_start")
    assert once.unstable == ("ranges.count", "work.count")
    assert story.compared.result("test_more").unstable == ()


def test_values_that_differ_from_step_to_step_are_not_judged(story: Story) -> None:
    base = story.stored("test_varies")
    assert base is not None
    assert not base.totals["ranges.count"].is_constant


SELECTION = ("-k", "more or named or varies_now or removed or added or replaced")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fail_on", "failed", "exit_code"),
    [
        ("none", set[str](), 0),
        ("regressed", {"test_more"}, 1),
        ("Changed, NEW", {"test_named", "test_replaced", "test_added"}, 1),
        ("missing", set[str](), 1),
    ],
    ids=["none", "regressed", "changed and new", "missing"],
)
def test_fail_on_chooses_what_fails(story: Story, fail_on: str, failed: set[str], exit_code: int) -> None:
    session = story.project.pytest("--opprof-baseline=main", f"--opprof-fail-on={fail_on}", *SELECTION)
    assert {name for name, outcome in session.outcomes.items() if outcome != "passed"} == failed
    assert session.exit_code == exit_code
    assert any("test_removed" in line for line in (*session.told, session.banner)) == (fail_on == "missing")


@pytest.mark.slow
def test_command_line_beats_marker_beats_ini_file(story: Story) -> None:
    ini = "opprof_gate=\n  ranges.count = 1%\n  inner.count = off\n  work.count = exact"
    by_ini = story.project.pytest("--opprof-baseline=main", "-o", ini, "-k", "gate or replaced")
    failed = {name for name, outcome in by_ini.outcomes.items() if outcome == "failure"}
    # The markers' own rules on ranges.count and inner.count hold; only the ini file has a rule on work.count.
    assert failed == {"test_gate_off", "test_gate_advisory", "test_gate_exact", "test_gate_tolerance"}
    by_hand = story.project.pytest(
        *("--opprof-baseline=main", "-o", ini, "-k", "gate or replaced"),
        *(
            "--opprof-gate=inner.count=off",
            "--opprof-gate=wor*.count=100000%",
            "--opprof-gate=addcmul.count=exact",
        ),
    )
    failed = {name for name, outcome in by_hand.outcomes.items() if outcome == "failure"}
    assert failed == {"test_replaced"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        (
            "--opprof-fail-on=regresed",
            "--opprof-fail-on: unknown verdict 'regresed' (did you mean 'regressed'?)",
        ),
        ("--opprof-gate=ranges.cuont=exact", "(did you mean 'ranges.count'?)"),
        ("--opprof-columns=Name,Self_CPU", "unknown column 'Self_CPU' (did you mean 'Self CPU'?)"),
        ("--opprof-store=nowhere://bucket", "unknown kind of store (Protocol not known: nowhere)"),
        ("--opprof-baseline= --opprof-save=feature:x", "--opprof-save='feature:x': a name has 1 to 100 "),
        ("--opprof-baseline= --opprof-save=traces", "has no colon, and is none of ab, crashes, fleet, "),
        ("--opprof-baseline= --opprof-save=main --opprof-store=nowhere://x", "unknown kind of store ("),
    ],
)
def test_invalid_option_is_refused_at_once(story: Story, option: str, complaint: str) -> None:
    session = story.project.pytest("--opprof-baseline=main", *option.split(), writes_run=False)
    assert session.exit_code == pytest.ExitCode.USAGE_ERROR
    (line,) = (line for line in session.stderr.splitlines() if line.startswith("ERROR"))
    assert complaint in line
    assert "passed" not in session.stdout
