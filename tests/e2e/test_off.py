"""Sessions that measure nothing because opprof is off or an option is empty: they say so."""

import pytest
from e2e.project import WORK_TWICE, Project


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["alone", "xdist"])
def test_gate_on_the_command_line_is_not_ignored_silently(project: Project, workers: tuple[str, ...]) -> None:
    plugins = ("xdist",) if workers else ()
    project.write("test_it.py", WORK_TWICE)
    for off in ("--opprof=off", "-oopprof=off"):
        arguments = (off, "--opprof-baseline=main", "--opprof-save=main", *workers)
        session = project.pytest(*arguments, plugins=plugins, writes_run=False)
        assert session.exit_code == pytest.ExitCode.OK
        assert (
            "opprof: not measured: opprof is off (--opprof=off, or opprof = off in the ini file); "
            "nothing was compared with main; nothing was saved as main"
        ) in session.stdout
        failing = project.pytest(*arguments, "--opprof-fail-on=unmeasured", plugins=plugins, writes_run=False)
        assert failing.exit_code == pytest.ExitCode.TESTS_FAILED


def test_off_without_a_gate_on_the_command_line_is_silent(project: Project) -> None:
    project.write("test_it.py", WORK_TWICE)
    session = project.pytest("--opprof=off", "-oopprof_baseline=main", writes_run=False)
    assert session.exit_code == pytest.ExitCode.OK
    assert "opprof: " not in session.stdout


def test_empty_option_is_named(project: Project) -> None:
    project.write("test_it.py", WORK_TWICE)
    session = project.pytest("--opprof-baseline=", "--opprof-save=")
    assert session.exit_code == pytest.ExitCode.OK
    assert "opprof: --opprof-baseline is empty: nothing is compared\n" in session.stdout
    assert "opprof: --opprof-save is empty: nothing is saved\n" in session.stdout
