"""How long an acceptance holds: until main was measured with it, or became better without it."""

import pytest
from e2e.accept.acceptances import REASON, SHOWN, accept, accepted, merged
from e2e.project import Project


def accepted_rise(project: Project) -> None:
    """Accept the rise of the topic branch, and commit both."""
    project.pytest("--opprof-baseline=main")
    assert accept(project, "test_it.py::test_it", "--reason", REASON).returncode == 0
    project.commit()


def changed(project: Project, branch: str, before: int, after: int) -> None:
    """Work on a separate branch."""
    project.git("checkout", "-q", "-b", branch)
    project.replace("test_it.py", f"def test_it(): work({before})", f"def test_it(): work({after})")
    project.commit()


@pytest.mark.slow
def test_an_acceptance_ends_once_main_was_measured_with_it(repository: Project) -> None:
    accepted_rise(repository)
    merged(repository, "topic")
    assert len(accepted(repository)) == 1
    changed(repository, "better", 3, 2)
    assert repository.pytest("--opprof-baseline=main").exit_code == 0
    merged(repository, "better")

    changed(repository, "back", 2, 3)
    again = repository.pytest("--opprof-baseline=main")
    assert again.exit_code == pytest.ExitCode.TESTS_FAILED
    words = " ".join(again.failures["test_it"].split())
    assert "REGRESSED: 1 more range in each step than main" in words
    assert f"no longer accepted up to 3 ({REASON}): the baseline already includes it" in words
    # It can be accepted again.
    accepted_rise(repository)
    assert repository.pytest("--opprof-baseline=main").exit_code == 0


@pytest.mark.slow
def test_an_acceptance_holds_while_main_goes_on_without_it(repository: Project) -> None:
    accepted_rise(repository)
    repository.git("checkout", "-q", "main")
    changed(repository, "other", 2, 2)
    merged(repository, "other")
    repository.git("checkout", "-q", "topic")
    repository.git("merge", "-q", "main")
    session = repository.pytest("--opprof-baseline=main")
    assert session.exit_code == 0
    session.lines.fnmatch_lines([SHOWN])


@pytest.mark.slow
def test_an_acceptance_ends_where_main_became_better_than_it_was(repository: Project) -> None:
    accepted_rise(repository)
    repository.git("checkout", "-q", "main")
    repository.write("helper.py", "")
    repository.replace("test_it.py", "def work(times):", "def work(times):\n    times -= 1")
    repository.commit()
    repository.pytest("--opprof-save=main")
    repository.git("checkout", "-q", "topic")
    repository.git("merge", "-q", "main")
    repository.replace("test_it.py", "def test_it(): work(3)", "def test_it(): work(4)")
    session = repository.pytest("--opprof-baseline=main")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    words = " ".join(session.failures["test_it"].split())
    assert f"no longer accepted up to 3 ({REASON}): the baseline has since improved from 2 to 1" in words


@pytest.mark.slow
def test_run_saved_from_a_file_ends_an_acceptance(repository: Project) -> None:
    accepted_rise(repository)
    merged(repository, "topic", save=False)
    changed(repository, "better", 3, 2)
    merged(repository, "better", save=False)
    measured = repository.pytest()
    keep = ("-m", "pytest_opprof.cli.main", "baseline", "save", "main", str(measured.document))
    assert repository.python(*keep).returncode == 0
    changed(repository, "back", 2, 3)
    assert repository.pytest("--opprof-baseline=main").exit_code == pytest.ExitCode.TESTS_FAILED


@pytest.mark.slow
def test_saving_counts_ends_an_acceptance_on_any_branch(repository: Project) -> None:
    store = "--opprof-store=counts:ci"
    repository.git("checkout", "-q", ".")
    repository.pytest(store, "--opprof-save=main")
    repository.commit()
    repository.replace("test_it.py", "def test_it(): work(2)", "def test_it(): work(3)")
    assert repository.pytest(store, "--opprof-baseline=main").exit_code == pytest.ExitCode.TESTS_FAILED
    assert accept(repository, "test_it.py::test_it", "--reason", REASON).returncode == 0
    # The counts are merged with the change, and the entry would stay behind.
    repository.pytest(store, "--opprof-save=main")
    assert accepted(repository) == []
