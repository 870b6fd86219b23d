"""An intended rise: accepted with a reason, shown to reviewers, and over once the baseline has it."""

import json
import shlex

import pytest
from e2e.accept.acceptances import REASON, SHOWN, TEST, accept, accepted
from e2e.project import Project


@pytest.mark.slow
def test_a_rise_is_accepted_until_main_has_it(repository: Project) -> None:
    failed = repository.pytest("--opprof-baseline=main")
    assert 'intended? opprof accept test_it.py::test_it --reason "..."' in failed.failures["test_it"]

    done = accept(repository, "test_it.py::test_it", "--reason", REASON)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "Accepted for test_it.py::test_it until the next baseline. "
        "Commit .opprof/accepted.json with the change",
        "    ranges.count up to 3",
    ]
    # Git shows only the files in our folder that a reviewer should see.
    assert repository.git("status", "--porcelain", "-uall").splitlines() == [
        "M test_it.py",
        "?? .opprof/accepted.json",
    ]
    (entry,) = accepted(repository)
    assert (
        entry["test"],
        entry["op"],
        entry["metric"],
        entry["value"],
        entry["reason"],
        entry["baseline"],
    ) == (
        *("test_it.py::test_it", None, "ranges.count", 3),
        *(REASON, "main"),
    )
    repository.commit()

    passed = repository.pytest("--opprof-baseline=main")
    assert passed.exit_code == 0
    passed.lines.fnmatch_lines([SHOWN, "1 accepted, 1 passed * nothing dropped"])

    repository.replace("test_it.py", "def test_it(): work(3)", "def test_it(): work(4)")
    more = repository.pytest("--opprof-baseline=main")
    assert more.exit_code == pytest.ExitCode.TESTS_FAILED
    words = " ".join(more.failures["test_it"].split())
    assert "REGRESSED: 2 more ranges in each step" in words
    assert f"accepted only up to 3 ({REASON})" in words
    repository.git("checkout", "-q", "test_it.py")

    # A save on the topic branch does not say that main has it.
    mine = repository.pytest("--opprof-save=main")
    assert not any("removed" in line for line in mine.told)
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "topic")
    merged = repository.pytest("--opprof-save=main")
    (told,) = (line for line in merged.told if "removed" in line)
    assert "removed 1 entry of accepted.json (ranges.count of test_it.py::test_it); commit it" in told
    assert accepted(repository) == []
    after = repository.pytest("--opprof-baseline=main")
    after.lines.fnmatch_lines(["2 passed * nothing dropped"])


def test_the_command_in_the_failure_is_the_one_to_type(project: Project) -> None:
    project.write("test_it.py", TEST)
    project.pytest("--opprof-save=main")
    project.replace("test_it.py", "def test_other(name): work(2)", "def test_other(name): work(9)")
    failed = project.pytest("--opprof-baseline=main")
    told = failed.failures["test_other[a b]"]
    (line,) = (line for line in told.splitlines() if line.startswith("intended? "))
    command = line.removeprefix("intended? opprof ").replace('"..."', f"'{REASON}'")
    done = project.python("-m", "pytest_opprof.cli.main", *shlex.split(command))
    assert (done.returncode, done.stderr) == (0, "")
    assert project.pytest("--opprof-baseline=main").exit_code == 0


@pytest.mark.slow
def test_workers_and_the_compare_command_know_what_was_accepted(repository: Project) -> None:
    pytest.importorskip("xdist")
    before = repository.pytest("-n", "2", "--opprof-baseline=main", plugins=("xdist",))
    assert before.exit_code == pytest.ExitCode.TESTS_FAILED
    assert accept(repository, "test_it.py::test_it", "ranges.count", "--reason", REASON).returncode == 0
    session = repository.pytest("-n", "2", "--opprof-baseline=main", plugins=("xdist",))
    assert session.exit_code == 0
    session.lines.fnmatch_lines([SHOWN, "1 accepted, 1 passed * nothing dropped"])

    compare = ("-m", "pytest_opprof.cli.main", "compare", "main", str(session.document))
    done = repository.python(*compare)
    assert done.returncode == 0
    pytest.LineMatcher(done.stdout.splitlines()).fnmatch_lines(["ACCEPTED: 1 more range*", "*1 accepted*"])
    (repository.folder / ".opprof" / "accepted.json").unlink()
    written = repository.python(*compare, "-o", "cmp.json")
    assert written.returncode == 1
    command = "opprof accept --comparison cmp.json test_it.py::test_it --reason"
    assert f'intended? {command} "..."' in written.stdout
    assert (
        accept(repository, "--comparison", "cmp.json", "test_it.py::test_it", "--reason", "so").returncode
        == 0
    )
    assert repository.python(*compare).returncode == 0


@pytest.mark.slow
def test_errors_are_one_sentence(project: Project) -> None:
    project.write("test_it.py", TEST)
    nothing = accept(project, "test_it.py::test_it", "--reason", REASON)
    assert nothing.returncode == 2
    assert "nothing was compared here yet. Run the tests: pytest --opprof-baseline=NAME" in nothing.stderr
    project.pytest("--opprof-save=main")
    project.replace("test_it.py", "def test_it(): work(2)", "def test_it(): work(3)")
    project.pytest("--opprof-baseline=main")
    wrong = accept(project, "test_it.py::test_ti", "--reason", REASON)
    assert wrong.returncode == 2
    assert "(did you mean 'test_it.py::test_it'?)" in wrong.stderr

    file = project.folder / ".opprof" / "accepted.json"
    file.write_text('{"kind": "opprof-accepted"')
    done = accept(project, "test_it.py::test_it", "--reason", REASON)
    assert done.returncode == 4
    assert "accepted.json: this is not JSON" in done.stderr
    session = project.pytest("--opprof-baseline=main", writes_run=False)
    assert session.exit_code == pytest.ExitCode.USAGE_ERROR
    assert any("accepted.json: this is not JSON" in line for line in session.told)
    saved = project.pytest("--opprof-save=main")
    assert saved.exit_code == 0
    assert any("accepted.json: this is not JSON" in line for line in saved.told)
    assert file.read_text() == '{"kind": "opprof-accepted"'


@pytest.mark.slow
def test_unwritable_project_is_still_compared(project: Project) -> None:
    project.write("test_it.py", TEST)
    project.pytest("--opprof-save=main")
    (project.folder / ".opprof" / ".state" / "last.json").mkdir(parents=True)
    green = project.pytest("--opprof-baseline=main")
    assert green.exit_code == 0
    assert not any("last.json" in line for line in green.told)
    project.replace("test_it.py", "def test_it(): work(2)", "def test_it(): work(3)")
    red = project.pytest("--opprof-baseline=main")
    assert red.exit_code == pytest.ExitCode.TESTS_FAILED
    assert any("`opprof accept` cannot use this comparison: " in line for line in red.told)


@pytest.mark.slow
def test_a_rise_beside_an_op_whose_memory_fell_is_accepted(project: Project) -> None:
    """An op's allocated less freed memory may be negative: the comparison is written all the same."""
    project.write(
        "test_it.py",
        """\
        import pytest
        from pytest_opprof import record_function

        MORE = 0

        @pytest.mark.profile(profile_memory=True)
        def test_it():
            rows = [None] * 1000
            with record_function("release"):
                if MORE:
                    del rows
            for _ in range(MORE):
                with record_function("work"):
                    pass
        """,
    )
    project.pytest("--opprof-save=main")
    project.replace("test_it.py", "MORE = 0", "MORE = 1")
    gate = "--opprof-gate=release.cpu_memory=exact"
    failed = project.pytest("--opprof-baseline=main", gate, "--opprof-report=json:comparison.json")
    assert failed.exit_code == 1
    assert failed.result("test_it").ops
    release = next(op for op in failed.result("test_it").ops if op.name == "release")
    freed = release.metrics["cpu_memory"]
    assert freed.high < 0
    written = json.loads((project.folder / "comparison.json").read_text())
    assert any(change["head"] == freed.high for change in written["tests"][0]["changes"])
    assert accept(project, "test_it.py::test_it", "--reason", REASON).returncode == 0
