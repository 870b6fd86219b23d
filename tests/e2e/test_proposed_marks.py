"""`opprof init --try`: which tests it proposes to mark, and why."""

import pytest
from e2e.project import Project

STEADY = """\
    from pytest_opprof import record_function

    def test_one():
        with record_function("work"):
            pass

    def test_two():
        with record_function("work"):
            pass
"""
MIXED = """\
    import itertools
    import pytest
    from pytest_opprof import record_function

    calls = itertools.count(1)

    @pytest.mark.parametrize("size", [1, 2, pytest.param(3, marks=pytest.mark.skip)])
    def test_sized(size):
        with record_function("work"):
            pass

    def test_other():
        with record_function("work"):
            pass

    def test_plain():
        pass

    def test_varying():
        for _ in range(next(calls)):
            with record_function("draw"):
                pass

    def test_failing():
        assert not "equal"
"""


@pytest.fixture
def suite(project: Project) -> Project:
    project.write("models/test_net.py", STEADY)
    project.write("models/deep/test_deep.py", STEADY)
    project.write("test_mixed.py", MIXED)
    return project


LINES = ["models", "test_mixed.py::test_sized", "test_mixed.py::test_other"]


def init(project: Project, *arguments: str) -> str:
    done = project.python("-m", "pytest_opprof.cli.main", "init", *arguments)
    assert done.returncode == 0
    return done.stdout


@pytest.mark.slow
def test_steady_folders_are_proposed_and_the_rest_explained(suite: Project) -> None:
    before = (suite.folder / "pytest.ini").read_text()
    told = init(suite, "--try")
    lines = told.partition("opprof_mark =\n")[2].splitlines()
    assert sorted(line.split()[0] for line in lines[:3]) == sorted(LINES)
    assert "# 4 tests, " in next(line for line in lines if line.startswith("    models "))
    assert "ms in each step; the same counts in 2 runs" in lines[0]
    assert "not marked: test_mixed.py::test_plain: records neither ops nor ranges" in lines
    assert "not marked: test_mixed.py::test_varying: counts vary: draw" in lines
    assert "not marked: test_mixed.py::test_failing: the test was failed" in lines
    written = (suite.folder / "pytest.ini").read_text()
    assert set(before.splitlines()) < set(written.splitlines())
    measured = {test.node_id.partition("[")[0] for test in suite.pytest().run.tests}
    assert {name for name in measured if "models" not in name} == set(LINES[1:])
    assert len([name for name in measured if "models" in name]) == 4


@pytest.mark.slow
def test_existing_marks_are_left_alone(suite: Project) -> None:
    suite.replace("pytest.ini", "[pytest]", "[pytest]\nopprof_mark = test_mixed.py")
    assert "sets opprof_mark already: change it by hand" in init(suite, "--try", "models")
    assert "opprof_mark = test_mixed.py\n" in (suite.folder / "pytest.ini").read_text()


@pytest.mark.slow
def test_arguments_after_the_option_go_to_pytest(suite: Project) -> None:
    told = init(suite, "--try", "models", "-k", "test_one")
    assert "    models   # 2 tests" in told
    assert "mixed" not in told
    assert "\nnext:\n    pytest --opprof-save=main" in told  # marked tests need no further mark


@pytest.mark.slow
def test_trial_keeps_and_compares_nothing(suite: Project) -> None:
    asked = (
        "opprof_save = main\nopprof_baseline = main\nopprof_traces = all\nopprof_report = json:report.json"
    )
    suite.replace("pytest.ini", "[pytest]", f"[pytest]\n{asked}")
    assert "    models   # 2 tests" in init(suite, "--try", "models", "-k", "test_one")
    assert not (suite.folder / ".opprof" / "main").exists()
    assert not (suite.folder / "report.json").exists()


def test_without_the_option_no_test_is_run(suite: Project) -> None:
    told = init(suite)
    assert "opprof_mark" not in told
    assert "next: mark a test with @pytest.mark.profile, then\n" in told


@pytest.mark.slow
def test_toml_gets_a_list_and_tests_are_taken_out(project: Project) -> None:
    (project.folder / "pytest.ini").unlink()
    project.write("pyproject.toml", '[tool.pytest.ini_options]  # mine\naddopts = "-p opprof"\n')
    project.write("test_net.py", STEADY + "\n    def test_three(): test_one()\n    def test_plain(): pass\n")
    told = init(project, "--try")
    assert "    !test_net.py::test_plain   # records neither ops nor ranges" in told
    text = (project.folder / "pyproject.toml").read_text()
    assert 'opprof_mark = ["test_net.py", "!test_net.py::test_plain"]\n' in text
    assert "# mine\n" in text
    assert len(project.pytest().run.tests) == 3


def test_a_session_without_tests_is_one_error(project: Project) -> None:
    done = project.python("-m", "pytest_opprof.cli.main", "init", "--try")
    assert done.returncode == 2
    assert "opprof: --try: pytest measured nothing and ended with 5" in done.stderr
