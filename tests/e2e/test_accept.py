"""A rise that is meant: accepted with a reason, seen by who reviews it, and over when the baseline has it."""

import json
import shlex
import subprocess

import pytest
from e2e.project import INI, Project

TEST = """\
    import pytest
    from pytest_opprof import record_function

    def work(times):
        for _ in range(times):
            with record_function("work"):
                pass

    @pytest.mark.profile
    def test_it(): work(2)

    @pytest.mark.profile
    @pytest.mark.parametrize("name", ["a b"])
    def test_other(name): work(2)
"""
REASON = "so be it"
SHOWN = "test_it.py::test_it: ACCEPTED: 1 more range in each step than main*, accepted up to 3 (so be it)"


@pytest.fixture
def repository(project: Project) -> Project:
    """A project under git with a baseline of main, and a topic branch on which a test does more."""
    project.git("init", "-q", "-b", "main")
    project.write("test_it.py", TEST)
    project.commit()
    project.pytest("--opprof-save=main")
    project.git("checkout", "-q", "-b", "topic")
    project.replace("test_it.py", "def test_it(): work(2)", "def test_it(): work(3)")
    return project


def accept(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    return project.python("-m", "pytest_opprof.cli.main", "accept", *words)


def accepted(project: Project) -> list[dict[str, object]]:
    document = json.loads((project.folder / ".opprof" / "accepted.json").read_text())
    entries: list[dict[str, object]] = document["accepted"]
    return entries


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
    # All that git sees of our folder is what a reviewer should.
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
    assert f"more than was accepted, up to 3 ({REASON})" in words
    repository.git("checkout", "-q", "test_it.py")

    # A save on the topic branch does not say that main has it.
    mine = repository.pytest("--opprof-save=main")
    assert not any("removed" in line for line in mine.told)
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "topic")
    merged = repository.pytest("--opprof-save=main")
    (told,) = (line for line in merged.told if "removed" in line)
    assert "1 entry of accepted.json removed (ranges.count of test_it.py::test_it); commit it" in told
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
def test_what_goes_wrong_is_a_sentence(project: Project) -> None:
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
def test_a_project_that_cannot_be_written_is_compared_all_the_same(project: Project) -> None:
    project.write("test_it.py", TEST)
    project.pytest("--opprof-save=main")
    (project.folder / ".opprof" / ".state" / "last.json").mkdir(parents=True)
    green = project.pytest("--opprof-baseline=main")
    assert green.exit_code == 0
    assert not any("last.json" in line for line in green.told)
    project.replace("test_it.py", "def test_it(): work(2)", "def test_it(): work(3)")
    red = project.pytest("--opprof-baseline=main")
    assert red.exit_code == pytest.ExitCode.TESTS_FAILED
    assert any("`opprof accept` will not know of this comparison: " in line for line in red.told)


def test_a_rise_beside_an_op_whose_memory_fell_is_accepted(project: Project) -> None:
    """What an op takes less what it gives back may be negative: the comparison is written all the same."""
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


SEVERAL = """\
    import pytest
    from pytest_opprof import record_function

    def shared(times):
        for _ in range(times):
            with record_function("work"):
                pass

    def alone(times):
        for _ in range(times):
            with record_function("other work"):
                pass

    @pytest.mark.profile
    @pytest.mark.parametrize("name", ["a b", "c"])
    def test_shared(name): shared(2)

    @pytest.mark.profile
    def test_alone(): alone(2)

    @pytest.mark.profile
    def test_nothing(): pass
"""


@pytest.fixture
def several(project: Project) -> Project:
    """A project with three tests that fail for two causes."""
    project.git("init", "-q", "-b", "main")
    project.write("test_it.py", SEVERAL)
    # With them a test without an op is compared too.
    project.write("pytest.ini", INI + "opprof_instructions = off\n")
    project.commit()
    project.pytest("--opprof-save=main")
    project.replace("test_it.py", "shared(2)", "shared(3)")
    project.replace("test_it.py", "alone(2)", "alone(4)")
    return project


CAUSES = [
    "cause 1, 2 tests: test_it.py:6 in shared: work +1 a step",
    "    test_shared[[]a b]  3 ranges (+1)",
    "    test_shared[[]c]    3 ranges (+1)",
    '    intended? opprof accept --cause 1 --reason "..."',
    "cause 2, 1 test: test_it.py:11 in alone: other work +2 a step",
    "    test_alone  4 ranges (+2)",
    '    intended? opprof accept test_it.py::test_alone --reason "..."',
    'all of it intended? opprof accept --all --reason "..."',
    "1 test ran no op or range: nothing is compared",
    "3 regressed, 1 passed * nothing dropped",
]


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_one_command_accepts_all_tests_of_a_cause(several: Project, workers: tuple[str, ...]) -> None:
    plugins = ("xdist",) if workers else ()
    if workers:
        pytest.importorskip("xdist")
    failed = several.pytest(*workers, "--opprof-baseline=main", "-vv", plugins=plugins)
    failed.lines.fnmatch_lines(
        [*CAUSES[:-1], "    test_it.py::test_nothing", CAUSES[-1]] if not workers else CAUSES[:4]
    )
    # Each command once, in the section of one test; the other section says where.
    sections = failed.stdout.partition("= opprof =")[0]
    assert sections.count('intended? opprof accept --cause 1 --reason "..."') == 1
    assert sections.count("intended? accept cause 1, see test_it.py::test_shared[") == 1
    assert sections.count('intended? opprof accept test_it.py::test_alone --reason "..."') == 1
    # A JUnit report shows each test by itself.
    assert "opprof accept 'test_it.py::test_shared[a b]' --reason" in failed.failures["test_shared[a b]"]

    done = accept(several, "--cause", "1", "--reason", REASON)
    assert done.returncode == 0
    head, *entries = done.stdout.splitlines()
    assert (
        head == "Accepted for 2 tests until the next baseline. Commit .opprof/accepted.json with the change"
    )
    assert sorted(entries) == [
        "    test_it.py::test_shared[a b]: ranges.count up to 3",
        "    test_it.py::test_shared[c]: ranges.count up to 3",
    ]
    once = several.pytest(*workers, "--opprof-baseline=main", plugins=plugins)
    assert {name for name, outcome in once.outcomes.items() if outcome != "passed"} == {"test_alone"}
    assert accept(several, "--all", "--reason", REASON).returncode == 0
    assert several.pytest(*workers, "--opprof-baseline=main", plugins=plugins).exit_code == 0
    several.replace("test_it.py", "shared(3)", "shared(4)")
    more = several.pytest(*workers, "--opprof-baseline=main", plugins=plugins)
    assert {name for name, outcome in more.outcomes.items() if outcome != "passed"} == {
        "test_shared[a b]",
        "test_shared[c]",
    }


def test_causes_have_the_same_numbers_everywhere(several: Project) -> None:
    failed = several.pytest("--opprof-baseline=main", "--opprof-report=markdown:comment.md")
    titles = [line for line in failed.stdout.splitlines() if line.startswith("cause ")]
    assert len(titles) == 2
    comment = (several.folder / "comment.md").read_text().replace("\\", "").replace("`", "")
    compare = ("-m", "pytest_opprof.cli.main", "compare", "main", str(failed.document))
    done = several.python(*compare, "-o", "cmp.json")
    assert [line for line in done.stdout.splitlines() if line.startswith("cause ")] == titles
    command = 'opprof accept --comparison cmp.json --cause 1 --reason "..."'
    # In the section of the first test, and in the summary.
    assert done.stdout.count(f"intended? {command}") == 2
    shown = several.python("-m", "pytest_opprof.cli.main", "show", "cmp.json")
    assert [line for line in shown.stdout.splitlines() if line.startswith("cause ")] == titles
    for number, title in enumerate(titles, start=1):
        place = title.partition(": ")[2].partition(": ")[0]
        assert f"Cause {number}: {place}" in comment.replace("*", "")
    assert comment.count("opprof accept --cause 1") == 1


def test_quiet_session_names_what_failed(several: Project) -> None:
    failed = several.pytest("-q", "--opprof-baseline=main")
    assert [line for line in failed.told if "regressed" not in line] == [
        "opprof: cause 1, 2 tests: test_it.py:6 in shared: work +1 a step: test_shared[a b], test_shared[c]",
        "opprof: cause 2, 1 test: test_it.py:11 in alone: other work +2 a step: test_alone",
        "opprof: 1 test ran no op or range: nothing is compared",
    ]


def test_what_cannot_be_accepted_at_once_is_a_sentence(several: Project) -> None:
    several.pytest("--opprof-baseline=main")

    def told(*words: str) -> str:
        done = accept(several, *words, "--reason", REASON)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        return done.stderr

    assert "--cause 3: there is no such cause: the comparison of" in told("--cause", "3")
    one_of = "opprof accept takes one of these: TEST, --cause N, or --all"
    assert one_of in told()
    assert one_of in told("--all", "--cause", "1")
    assert one_of in told("test_it.py::test_alone", "--all")
    # A run of some tests takes the place of the one before, and has causes of its own.
    several.pytest("--opprof-baseline=main", "-k", "alone")
    assert "--cause 2: there is no such cause" in told("--cause", "2")
    several.pytest("--opprof-baseline=main", "-k", "nothing")
    assert "nothing regressed and no test is missing in the comparison of" in told("--all")
    several.pytest("--opprof-baseline=main")
    several.commit()
    # Committing what was measured makes it no other code; the next commit does.
    assert accept(several, "test_it.py::test_alone", "--reason", REASON).returncode == 0
    several.commit()
    assert "Run the tests again, or name a file" in told("--all")


def merged(project: Project, branch: str, *, save: bool = True) -> None:
    """Merge into main, and save there as CI does: nobody commits what the save changes."""
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--no-ff", "-m", "A merge", branch)
    if save:
        project.pytest("--opprof-save=main")
        project.git("checkout", "-q", ".")


def accepted_rise(project: Project) -> None:
    """Accept the rise of the topic branch, and commit both."""
    project.pytest("--opprof-baseline=main")
    assert accept(project, "test_it.py::test_it", "--reason", REASON).returncode == 0
    project.commit()


def changed(project: Project, branch: str, before: int, after: int) -> None:
    """Work on a branch of its own."""
    project.git("checkout", "-q", "-b", branch)
    project.replace("test_it.py", f"def test_it(): work({before})", f"def test_it(): work({after})")
    project.commit()


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
    assert f"no longer accepted up to 3 ({REASON}): the baseline was measured with it" in words
    # It can be accepted anew.
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
    assert f"no longer accepted up to 3 ({REASON}): the baseline improved from 2 to 1 since" in words


@pytest.mark.slow
def test_a_run_that_is_kept_as_a_file_ends_an_acceptance_too(repository: Project) -> None:
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
def test_a_save_of_counts_to_commit_ends_an_acceptance_on_any_branch(repository: Project) -> None:
    store = "--opprof-store=counts:ci"
    repository.git("checkout", "-q", ".")
    repository.pytest(store, "--opprof-save=main")
    repository.commit()
    repository.replace("test_it.py", "def test_it(): work(2)", "def test_it(): work(3)")
    assert repository.pytest(store, "--opprof-baseline=main").exit_code == pytest.ExitCode.TESTS_FAILED
    assert accept(repository, "test_it.py::test_it", "--reason", REASON).returncode == 0
    # The counts go with the change into main, and the entry would stay behind.
    repository.pytest(store, "--opprof-save=main")
    assert accepted(repository) == []


MARKED = "@pytest.mark.profile\ndef test_it(): work"


def test_a_test_that_is_gone_on_purpose_is_accepted_until_it_is_back(repository: Project) -> None:
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
            f"test_it.py::test_it: ACCEPTED: missing, as was accepted ({REASON})",
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


def test_tests_of_the_baseline_that_are_skipped_are_named(repository: Project) -> None:
    repository.git("checkout", "-q", ".")
    repository.write("test_whole.py", TEST)
    repository.pytest("--opprof-save=main")
    repository.replace("test_it.py", "def test_it(): work", "@pytest.mark.skip\ndef test_it(): work")
    repository.replace("test_whole.py", "def work", "pytest.skip('no', allow_module_level=True)\n\ndef work")
    session = repository.pytest("--opprof-baseline=main")
    assert session.exit_code == 0
    (told,) = (line for line in session.told if "skipped" in line)
    assert told.startswith("opprof: skipped, so no gate held 3 tests to main")
    assert told.endswith(": test_it.py::test_it, test_whole.py::test_it, test_whole.py::test_other[a b]")
    chosen = repository.pytest("--opprof-baseline=main", "-k", "other", "test_it.py")
    assert not any("skipped" in line for line in chosen.told)
