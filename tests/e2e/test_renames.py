"""A project with renamed stages and tests: one row each, in whole sessions."""

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

TESTS = """\
    import pytest
    from pytest_opprof import record_function

    def stages(*names):
        for name in names:
            with record_function(name):
                pass

    @pytest.mark.profile
    def test_fused():
        with record_function("forward"):
            stages("load", "scale", "shift", "store")

    @pytest.mark.profile
    def test_renamed():
        with record_function("forward"):
            stages("load", "scale", "store")

    @pytest.mark.profile
    def test_renamed_and_more():
        with record_function("forward"):
            stages("load", "scale")
        stages("store")
"""
MOVED = """\
    import pytest
    from pytest_opprof import record_function

    @pytest.mark.profile
    def test_moved():
        for name in ("first", "second", "third"):
            with record_function(name):
                pass
"""


@pytest.fixture(scope="module")
def sessions(make_project: MakeProject) -> tuple[Project, Session]:
    """A saved project that has changed since."""
    project = make_project("renames")
    project.write("test_it.py", TESTS)
    project.write("test_old.py", MOVED)
    project.pytest("--opprof-save=main")
    for old, new in (
        ('"load", "scale", "shift", "store"', '"load", "scale and shift", "store"'),
        ('"forward"):\n        stages("load", "scale", "store")', '"Forward"):\n        stages("load", "scale", "store")'),
        ('stages("load", "scale")\n    stages("store")', 'stages("load", "resize")\n    stages("store", "store")'),
    ):  # fmt: skip
        project.replace("test_it.py", old, new)
    (project.folder / "test_old.py").rename(project.folder / "test_new.py")
    return project, project.pytest("--opprof-baseline=main")


def test_a_fusion_is_one_row(sessions: tuple[Project, Session]) -> None:
    _, compared = sessions
    assert compared.outcomes["test_fused"] == "passed"
    compared.lines.fnmatch_lines(["*test_fused (scale + shift -> scale and shift -1)*"])


def test_a_renaming_is_one_row(sessions: tuple[Project, Session]) -> None:
    _, compared = sessions
    assert compared.outcomes["test_renamed"] == "passed"
    compared.lines.fnmatch_lines(["*test_renamed (forward -> Forward)*"])


@pytest.mark.slow
def test_rise_beside_a_renaming_fails_and_is_named(sessions: tuple[Project, Session]) -> None:
    _, compared = sessions
    assert compared.outcomes["test_renamed_and_more"] == "failure"
    told = pytest.LineMatcher(compared.failures["test_renamed_and_more"].splitlines())
    told.fnmatch_lines(
        [
            "REGRESSED: 1 more range in each step than *",
            "test_it.py:* in stages",
            "  store  1 -> 2  +1",
            "scale -> resize *count *1 *1 * 0 *renamed in stages, test_it.py:*",
            "all ranges *+1",
        ]
    )


def test_a_test_that_moved_is_missing_and_named(sessions: tuple[Project, Session]) -> None:
    _, compared = sessions
    assert compared.exit_code == 1
    assert compared.outcomes["test_moved"] == "passed"
    (sentence,) = [line for line in compared.told if line.startswith("opprof: test_old.py::test_moved: ")]
    assert sentence.endswith(
        "looks like test_new.py::test_moved, which is new (it runs the same ops): the same? "
        "--opprof-rename='test_old.py::test_moved -> test_new.py::test_moved'"
    )


ON_COMMAND_LINE = ("--opprof-rename=test_old.py->test_new.py", "--opprof-rename=gone.py->test_new.py")
IN_INI = ("-o", "opprof_rename=test_old.py -> test_new.py\n  gone.py -> test_new.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "plugins"),
    [(ON_COMMAND_LINE, ()), (IN_INI, ()), ((*IN_INI, "-n", "2"), ("xdist",))],
    ids=["command line", "ini", "two workers"],
)
def test_a_test_that_moved_is_held_to_its_baseline(
    sessions: tuple[Project, Session], arguments: tuple[str, ...], plugins: tuple[str, ...]
) -> None:
    project, _ = sessions
    for plugin in plugins:
        pytest.importorskip(plugin)
    renamed = project.pytest("--opprof-baseline=main", "-v", *arguments, "test_new.py", plugins=plugins)
    assert renamed.exit_code == 0
    renamed.lines.fnmatch_lines(["test_moved *PASS *"])
    told = [line.partition(": ")[2] for line in renamed.told]
    assert any(
        line.startswith("1 test of main")
        and line.endswith("compared under another name: test_old.py -> test_new.py")
        for line in told
    )
    assert any("has no test to rename by 'gone.py -> test_new.py'" in line for line in told)


def test_a_renaming_without_sides_is_refused(sessions: tuple[Project, Session]) -> None:
    project, _ = sessions
    refused = project.pytest("--opprof-baseline=main", "--opprof-rename=test_old.py", writes_run=False)
    assert refused.exit_code == pytest.ExitCode.USAGE_ERROR
    assert "opprof_rename: 'test_old.py' is not a rename: write it like" in refused.stderr


@pytest.mark.slow
def test_a_regressed_test_that_moved_is_not_a_new_baseline(make_project: MakeProject) -> None:
    project = make_project("moved")
    project.write("test_old.py", TESTS)
    project.pytest("--opprof-save=main")
    (project.folder / "test_old.py").rename(project.folder / "test_new.py")
    project.replace(
        "test_new.py", 'stages("load", "scale", "store")', 'stages("load", "scale", "store", "store")'
    )
    for _ in range(2):
        session = project.pytest(
            "--opprof-baseline=main", "--opprof-save=main", "--opprof-rename=test_old.py->test_new.py"
        )
        assert session.outcomes["test_renamed"] == "failure"
