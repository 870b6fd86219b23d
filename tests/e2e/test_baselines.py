"""Baselines over a project's life: commits, branches, selections, tests that come and go."""

import subprocess

import pytest
from e2e.conftest import MakeProject
from e2e.project import INI, WORK_TWICE, Project

from pytest_opprof.baselines.keys import key_of
from pytest_opprof.results.files import read_run


@pytest.fixture
def repository(project: Project) -> Project:
    """A project under git, with one commit on main."""
    project.git("init", "-q", "-b", "main")
    project.write("test_it.py", WORK_TWICE)
    project.commit()
    return project


def header(session_output: str) -> list[str]:
    """The header lines about the baseline."""
    return [line for line in session_output.splitlines() if line.startswith("opprof")]


@pytest.mark.slow
def test_branch_is_compared_with_its_merge_base(repository: Project) -> None:
    base = repository.commit()
    saved = repository.pytest("--opprof-save=main")
    assert saved.exit_code == 0
    key = key_of(saved.run)
    assert [path.name for path in repository.stored()] == [f"{key}.json"]
    assert f"opprof: saved 1 test as main@{base[:7]}: .opprof/main/{key}.json" in saved.told
    assert repository.git("status", "--porcelain") == "", "the store ignores itself"

    repository.git("checkout", "-q", "-b", "topic")
    repository.replace("test_it.py", "range(2)", "range(3)")
    dirty = repository.pytest("--opprof-baseline=main")
    assert dirty.exit_code == pytest.ExitCode.TESTS_FAILED
    assert f"baseline main@{base[:7]} (merge-base, less than a minute old)" in header(dirty.stdout)[0]
    assert f"REGRESSED: 1 more range in each step than main@{base[:7]} " in dirty.failures["test_it"]
    assert dirty.run.commit is not None
    assert (dirty.run.commit.id, dirty.run.commit.dirty, dirty.run.commit.branch) == (base, True, "topic")

    # main continues and is measured again, which does not affect the topic branch.
    repository.commit()
    repository.git("checkout", "-q", "main")
    repository.replace("test_it.py", "range(2)", "range(9)")
    later = repository.commit()
    repository.pytest("--opprof-save=main")
    assert len(repository.stored()) == 2
    repository.git("checkout", "-q", "topic")
    assert "REGRESSED: 1 more range" in repository.pytest("--opprof-baseline=main").failures["test_it"]

    # After merging main, the newer run counts: here 3 ranges against 9.
    repository.git("merge", "-q", "-s", "ours", "-m", "merge", "main")
    merged = repository.pytest("--opprof-baseline=main")
    assert merged.exit_code == 0
    assert f"baseline main@{later[:7]} (merge-base" in header(merged.stdout)[0]
    merged.lines.fnmatch_lines(["1 improved: test_it (work -6)"])


@pytest.mark.slow
def test_refs_of_the_repository_keep_baselines(repository: Project) -> None:
    base = repository.git("rev-parse", "HEAD")
    empty = repository.pytest("--opprof-store=git:", "--opprof-baseline=main")
    assert empty.exit_code == pytest.ExitCode.TESTS_FAILED
    assert any(line.startswith("opprof: no baseline 'main' in git: (it is empty)") for line in empty.told)
    saved = repository.pytest("--opprof-store=git:", "--opprof-save=main")
    assert f"opprof: saved 1 test as main@{base[:7]}: refs/opprof/main:{key_of(saved.run)}.json" in saved.told
    assert repository.stored() == [], "nothing is in the folder"
    repository.replace("test_it.py", "range(2)", "range(3)")
    session = repository.pytest("--opprof-store=git:", "--opprof-baseline=main")
    assert f"REGRESSED: 1 more range in each step than main@{base[:7]} " in session.failures["test_it"]
    assert " · store git:" in header(session.stdout)[0]


GIT = "--opprof-store=git:"


@pytest.fixture
def monorepo(project: Project) -> Project:
    """Two projects in one repository whose tests have equal names: a runs 2 ranges, b runs 4."""
    project.git("init", "-q", "-b", "main")
    for name, many in (("a", 2), ("b", 4)):
        project.write(f"packages/{name}/pytest.ini", INI)
        project.write(f"packages/{name}/test_it.py", WORK_TWICE.replace("range(2)", f"range({many})"))
    project.commit()
    return project


@pytest.mark.slow
@pytest.mark.parametrize("store", ["git:", "dir:../../shared"])
def test_projects_of_a_repository_keep_their_own_baselines(monorepo: Project, store: str) -> None:
    for name in "ab":
        monorepo.pytest(f"--opprof-store={store}", "--opprof-save=main", cwd=f"packages/{name}")
    for name, many in (("a", 2), ("b", 4)):
        base = ("-q", f"--opprof-store={store}", "--opprof-baseline=main")
        unchanged = monorepo.pytest(*base, cwd=f"packages/{name}")
        assert unchanged.told == ["opprof: 1 passed · nothing dropped"]
        monorepo.replace(f"packages/{name}/test_it.py", f"range({many})", f"range({many + 1})")
        risen = monorepo.pytest(*base, cwd=f"packages/{name}")
        assert "REGRESSED: 1 more range in each step than main@" in risen.failures["test_it"]
    unknown = monorepo.pytest(f"--opprof-store={store}", "--opprof-baseline=other", cwd="packages/a")
    assert "(it has: main, packages/b:main)" in unknown.told[0]


def test_a_project_reads_what_an_older_release_stored(monorepo: Project) -> None:
    top = monorepo.pytest(GIT, "--opprof-save=main", "--rootdir=.", "packages/a")
    assert top.run.commit is not None
    listed = monorepo.git("ls-tree", "refs/opprof/main")
    old = monorepo.write("tree", listed.replace(key_of(top.run), top.run.commit.id) + "\n")
    with old.open() as lines:
        made = subprocess.run(
            ["git", "mktree"], cwd=monorepo.folder, stdin=lines, check=True, capture_output=True
        )
    tree = monorepo.git("commit-tree", "-m", "x", made.stdout.decode().strip())
    monorepo.git("update-ref", "refs/opprof/main", tree)
    session = monorepo.pytest(GIT, "--opprof-baseline=main", "-q", cwd="packages/b")
    assert "opprof: an older release stored it without its project" in session.told
    monorepo.pytest(GIT, "--opprof-save=main", cwd="packages/b")
    session = monorepo.pytest(GIT, "--opprof-baseline=main", "-q", cwd="packages/b")
    assert session.told == ["opprof: 1 passed · nothing dropped"]


@pytest.mark.slow
@pytest.mark.parametrize("store", ["git:", "dir:.opprof"])
def test_jobs_of_a_matrix_keep_their_own_baselines(repository: Project, store: str) -> None:
    repository.write("conftest.py", "import os, platform\nplatform.machine = lambda: os.environ['MACHINE']")
    repository.replace("test_it.py", "import pytest", "import os, pytest")
    repository.replace("test_it.py", "range(2)", "range(len(os.environ['MACHINE']))")
    repository.commit()
    machines = ("x86_64", "aarch64")
    for machine in machines:
        repository.pytest(f"--opprof-store={store}", "--opprof-save=main", env={"MACHINE": machine})
    for machine in machines:
        base = ("-q", f"--opprof-store={store}", "--opprof-baseline=main")
        session = repository.pytest(*base, env={"MACHINE": machine})
        assert session.told == ["opprof: 1 passed · nothing dropped"], machine
    third = repository.pytest(*base, env={"MACHINE": "riscv64"})
    assert any("was measured in another environment (machine architecture " in line for line in third.told)


@pytest.mark.slow
def test_reviewed_counts_are_committed_and_compared_with(repository: Project) -> None:
    # The number of instructions depends on the Python release.
    store = ("--opprof-store=counts:ci", "--opprof-instructions=off")
    saved = repository.pytest(*store, "--opprof-save=main")
    assert any(line.endswith(": ci/main.counts.json") for line in saved.told)
    repository.commit()
    again = repository.pytest(*store, "--opprof-save=main")
    assert again.exit_code == 0
    assert repository.git("status", "--porcelain") == "", "two saves of unchanged code are the same bytes"
    session = repository.pytest(*store, "--opprof-baseline=main")
    assert session.exit_code == 0
    assert "baseline main (reviewed counts) " in header(session.stdout)[0]
    repository.replace("test_it.py", "range(2)", "range(3)")
    session = repository.pytest(*store, "--opprof-baseline=main")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert "REGRESSED: 1 more range in each step than main " in session.failures["test_it"]
    repository.pytest(*store, "--opprof-save=main")
    changed = repository.git("diff", "--unified=0", "ci").splitlines()
    assert [line for line in changed if line.startswith("+ ")] == [
        '+    "ranges.count": 3,',
        '+      "count": 3',
    ]


@pytest.mark.slow
def test_the_nearest_ancestor_stands_in_for_a_commit_without_a_run(repository: Project) -> None:
    base = repository.commit()
    repository.pytest("--opprof-save=main")
    repository.commit()
    repository.git("checkout", "-q", "-b", "topic")
    session = repository.pytest("--opprof-baseline=main")
    assert session.exit_code == 0
    assert f"baseline main@{base[:7]} (nearest ancestor" in header(session.stdout)[0]

    repository.git("checkout", "-q", "--orphan", "unrelated")
    repository.commit()
    session = repository.pytest("--opprof-baseline=main")
    assert session.exit_code == 0
    assert header(session.stdout)[1] == (
        f"opprof: using the latest run named 'main': the commit {base[:7]} it was stored under is not an ancestor "
        "of HEAD"
    )


@pytest.mark.slow
def test_uncommitted_changes_are_kept_apart_and_reported(repository: Project) -> None:
    base = repository.commit()
    repository.replace("test_it.py", "range(2)", "range(5)")
    saved = repository.pytest("--opprof-save=main")
    assert [path.name.partition("_")[0] for path in repository.stored()] == [f"{base}-dirty"]
    assert "opprof: the work tree has uncommitted changes, so the run is stored as '-dirty'" in saved.told
    session = repository.pytest("--opprof-baseline=main")
    assert session.exit_code == 0
    assert f"opprof: main@{base[:7]}+dirty was measured with uncommitted changes" in session.told


@pytest.mark.slow
def test_before_the_first_commit_a_baseline_is_kept_under_its_time(project: Project) -> None:
    project.git("init", "-q", "-b", "main")
    project.write("test_it.py", WORK_TWICE)
    saved = project.pytest("--opprof-save=main", "-q")
    assert "opprof: there is no commit, so the run is stored under its time" in saved.told
    session = project.pytest("--opprof-baseline=main", "-q")
    assert session.exit_code == 0
    assert session.told == [
        "opprof: using the latest run named 'main': the repository has no commit yet",
        "opprof: 1 passed · nothing dropped",
    ]


@pytest.mark.slow
def test_no_baseline_is_one_sentence_and_a_failure(project: Project) -> None:
    project.write("test_it.py", WORK_TWICE.replace("profile", 'profile(limits={"work.count": 1})'))
    sentence = (
        "opprof: no baseline 'main' in dir:.opprof (it is empty). "
        "Record one on that branch: pytest --opprof-save=main"
    )
    session = project.pytest("--opprof-baseline=main")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert set(session.told) == {sentence}
    assert session.outcomes == {"test_it": "failure"}, "limits need no baseline"

    project.write("test_it.py", WORK_TWICE)
    session = project.pytest("--opprof-baseline=main", "--opprof-fail-on=regressed")
    assert session.exit_code == 0
    assert session.told == [sentence]
    assert session.outcomes == {"test_it": "passed"}

    project.pytest("--opprof-save=release-1")
    session = project.pytest("--opprof-baseline=main")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert session.outcomes == {"test_it": "passed"}
    assert set(session.told) == {sentence.replace("it is empty", "it has: release-1")}


@pytest.mark.slow
def test_a_save_with_a_selection_replaces_only_what_ran(project: Project) -> None:
    project.write(
        "test_it.py",
        """\
        import pytest
        from pytest_opprof import record_function

        @pytest.mark.profile
        @pytest.mark.parametrize("name", ["a", "b", "c"])
        def test_it(name):
            for _ in range(2):
                with record_function(name):
                    pass
        """,
    )
    project.pytest("--opprof-save=main")
    project.replace("test_it.py", "range(2)", "range(3)")
    saved = project.pytest("--opprof-save=main", "-k", "[a] or [b]", "--deselect=test_it.py::test_it[b]")
    assert "opprof: 2 tests that did not run kept from main" in saved.told
    newest = read_run(project.stored()[-1])
    carried = {test.node_id: test.carried_from is not None for test in newest.tests}
    assert carried == {f"test_it.py::test_it[{name}]": name != "a" for name in "abc"}
    session = project.pytest("--opprof-baseline=main")
    assert {name for name, outcome in session.outcomes.items() if outcome == "failure"} == {
        "test_it[b]",
        "test_it[c]",
    }

    # A removed test is not carried over if its file is collected whole.
    project.replace("test_it.py", '["a", "b", "c"]', '["a", "b"]')
    project.pytest("--opprof-save=main", "-k", "[a]")
    newest = read_run(project.stored()[-1])
    assert {test.node_id for test in newest.tests} == {"test_it.py::test_it[a]", "test_it.py::test_it[b]"}


def test_regressed_test_does_not_replace_its_baseline(project: Project) -> None:
    project.write("test_it.py", WORK_TWICE)
    project.pytest("--opprof-save=main")
    project.replace("test_it.py", "range(2)", "range(3)")
    both = project.pytest("--opprof-save=main", "--opprof-baseline=main")
    assert both.exit_code == pytest.ExitCode.TESTS_FAILED
    assert "opprof: 1 of 1 tests not saved: they did not pass or were not measured" in both.told
    assert "REGRESSED" in project.pytest("--opprof-baseline=main").failures["test_it"]


@pytest.fixture(scope="module")
def shrunk(make_project: MakeProject) -> Project:
    """A project whose baseline has tests that no longer exist."""
    project = make_project("shrunk")
    for name, extra in (("one", "def test_more(): pass"), ("gone", ""), ("skips", ""), ("breaks", "")):
        text = f"import pytest\npytestmark = pytest.mark.profile\ndef test_{name}(): pass\n{extra}\n"
        project.write(f"tests/test_{name}.py", text)
    project.pytest("--opprof-save=main")
    project.replace("tests/test_one.py", "def test_more(): pass", "")
    (project.folder / "tests/test_gone.py").unlink()
    project.write("tests/test_skips.py", "import pytest\npytest.skip('not here', allow_module_level=True)")
    project.write("tests/test_breaks.py", "import no_such_module")
    return project


MORE, GONE = "tests/test_one.py::test_more", "tests/test_gone.py::test_gone"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "missing", "cwd"),
    [
        ((), {MORE, GONE}, "."),
        (("tests",), {MORE, GONE}, "."),
        (("..",), {MORE, GONE}, "tests"),
        (("tests/test_one.py",), {MORE}, "."),
        (("-k", "nothing"), {MORE, GONE}, "."),
        (("tests/test_one.py::test_one",), set[str](), "."),
        (("--lf",), set[str](), "."),
        (("--ignore=tests/test_one.py",), {GONE}, "."),
        (("--ignore=tests",), set[str](), "."),
    ],
    ids=[
        "all",
        "folder",
        "from below",
        "file",
        "deselected",
        "node id",
        "last failed",
        "ignored file",
        "ignored folder",
    ],
)
def test_only_collected_tests_can_be_missing(
    shrunk: Project, arguments: tuple[str, ...], missing: set[str], cwd: str
) -> None:
    session = shrunk.pytest(
        *("--opprof-baseline=main", "--continue-on-collection-errors", "-q", *arguments), cwd=cwd
    )
    said = [line.removeprefix("opprof: ") for line in session.told] + [session.banner]
    lines = [line.partition(": its file")[0] for line in said if "its file was" in line]
    told = {name for line in lines for name in line.split(", ")}
    assert told == missing


@pytest.mark.slow
def test_save_keeps_tests_of_unreadable_files(shrunk: Project) -> None:
    # In a separate store: the other tests need the baseline unchanged.
    store = shrunk.folder / ".opprof" / "main"
    before = {path: path.read_bytes() for path in store.iterdir()}
    shrunk.pytest("--opprof-save=main", "--continue-on-collection-errors")
    newest = max(set(store.iterdir()) - set(before))
    kept = {test.node_id for test in read_run(newest).tests}
    newest.unlink()
    assert kept == {f"tests/test_{name}.py::test_{name}" for name in ("one", "skips", "breaks")}
