"""Baseline tests that are gone or skipped: named, and accepted if intended."""

import pytest
from e2e.accept.acceptances import REASON, TEST, accept, accepted, merged
from e2e.project import Project

MARKED = "@pytest.mark.profile\ndef test_it(): work"


@pytest.mark.slow
def test_missing_test_is_accepted_until_it_is_back(repository: Project) -> None:
    repository.git("checkout", "-q", ".")
    repository.replace("test_it.py", MARKED, MARKED.partition("\n")[2])
    missing = repository.pytest("--opprof-baseline=main")
    assert missing.exit_code == pytest.ExitCode.TESTS_FAILED
    assert missing.banner == "test_it.py::test_it: its file was collected without it"
    missing.lines.fnmatch_lines(['    intended? opprof accept test_it.py::test_it --reason "..."'])
    done = accept(repository, "test_it.py::test_it", "--reason", REASON)
    assert done.stdout.splitlines()[1:] == ["    the test may be missing"]
    repository.commit()
    passed = repository.pytest("--opprof-baseline=main")
    assert passed.exit_code == 0
    passed.lines.fnmatch_lines(
        [
            f"test_it.py::test_it: ACCEPTED: missing, and accepted ({REASON})",
            "1 accepted, 1 passed * nothing dropped",
        ]
    )
    merged(repository, "topic")
    assert len(accepted(repository)) == 1

    repository.git("checkout", "-q", "-b", "back")
    repository.replace("test_it.py", "def test_it(): work", MARKED)
    repository.commit()
    merged(repository, "back")
    repository.git("checkout", "-q", "-b", "gone")
    repository.replace("test_it.py", MARKED, MARKED.partition("\n")[2])
    assert repository.pytest("--opprof-baseline=main").exit_code == pytest.ExitCode.TESTS_FAILED


@pytest.mark.slow
def test_tests_of_the_baseline_that_are_skipped_are_named(repository: Project) -> None:
    repository.git("checkout", "-q", ".")
    repository.write("test_whole.py", TEST)
    repository.pytest("--opprof-save=main")
    repository.replace("test_it.py", "def test_it(): work", "@pytest.mark.skip\ndef test_it(): work")
    repository.replace("test_whole.py", "def work", "pytest.skip('no', allow_module_level=True)\n\ndef work")
    session = repository.pytest("--opprof-baseline=main")
    assert session.exit_code == 0
    alone, of_file = (line for line in session.told if "skipped" in line)
    assert all(told.startswith("opprof: not compared with main") for told in (alone, of_file))
    assert alone.endswith(": 1 skipped test: test_it.py::test_it")
    assert of_file.endswith(": test_whole.py::test_it, test_whole.py::test_other[a b]")
    chosen = repository.pytest("--opprof-baseline=main", "-k", "other", "test_it.py")
    assert not any("skipped" in line for line in chosen.told)
