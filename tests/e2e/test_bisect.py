"""``opprof bisect`` in a real repository: real commits, real work trees, real pytest processes."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from e2e.bisection import MODULE, TEST, bisect, built, commit
from e2e.conftest import MakeProject
from e2e.project import OWN_PYTHON, Project, environment, made_environment

STATE = Path(".opprof") / ".state" / "bisect.json"


@pytest.mark.slow
def test_commit_is_named_with_both_values(project: Project) -> None:
    commits = built(project, "2", "x = 1 +", "2", "2", "5", "7")
    done = bisect(project, f"--good={commits[0]}")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == f"5 commits from {commits[0][:7]} to {commits[5][:7]}"
    at = lines.index(f"{commits[4]} changed work.count from 2 to 5")
    assert lines[at + 1 :] == [
        "    author   a <a@example.org>",
        f"    date     {project.git('show', '-s', '--format=%cs', commits[4])}",
        "    subject  change 4",
        f"    before   {commits[3][:7]} change 3 (a <a@example.org>): 2",
        f"    it changed again later: {commits[5][:7]} has 7",
    ]
    assert not (project.folder / STATE).exists()
    assert project.git("worktree", "list").count("\n") == 0, "no work tree is left"
    assert project.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_a_test_file_that_is_a_link_is_bisected(project: Project) -> None:
    project.write("shared/real.py", TEST)
    (project.folder / "conftest.py").symlink_to("shared/absent.py")
    commits = built(project, "2")
    (project.folder / "test_model.py").unlink()
    (project.folder / "test_model.py").symlink_to("shared/real.py")
    (project.folder / "conftest.py").unlink()
    (project.folder / "conftest.py").symlink_to("shared/hook.py")
    project.write("shared/hook.py", "")
    commits.append(commit(project, "change 1", MODULE.format(count=5)))
    done = bisect(project, f"--good={commits[0]}")
    assert f"{commits[1]} changed work.count from 2 to 5" in done.stdout


@pytest.mark.slow
def test_commits_that_do_not_run_leave_a_range(project: Project) -> None:
    commits = built(project, "2", "syntax error", "5")
    done = bisect(project, f"--good={commits[0]}")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    at = lines.index("work.count changed from 2 to 5 in one of:")
    assert [line.split()[0] for line in lines[at + 1 :]] == [commit[:7] for commit in commits[1:]] + [
        "before"
    ]
    assert "skipped: " in lines[at + 1]
    assert lines[at + 2].endswith(": 5")


@pytest.mark.slow
def test_the_whole_error_of_a_skipped_commit_is_shown(project: Project) -> None:
    """For a commit whose test fails, and for one whose build prints more than the last lines."""
    fails = "def step():\n    raise ValueError('not' + ' ' * 3 + 'ready')\n"
    commits = built(project, "2", fails, "5")
    setup = f"--setup=if [ $OPPROF_SIDE = {commits[1][:7]} ] && [ -e $BROKEN ]; then seq -f 'line %g' 60; exit 3; fi"
    done = project.python(
        *("-m", "pytest_opprof.cli.main", "bisect", "test_model.py::test_step", "work.count"),
        *(f"--good={commits[0]}", setup),
        env={"BROKEN": os.devnull},
    )
    lines = done.stdout.splitlines()
    assert [f"    line {at}" for at in range(1, 61)] == [
        line for line in lines if line.startswith("    line ")
    ]
    failed = bisect(project, f"--good={commits[0]}").stdout.splitlines()
    assert any(line.startswith("    ") and "raise ValueError" in line for line in failed)
    assert any("ValueError: not   ready" in line for line in failed)
    # The result has a line for each commit.
    at = failed.index("work.count changed from 2 to 5 in one of:")
    assert len(failed) == at + 4


@pytest.mark.slow
def test_good_on_a_release_branch_begins_at_the_merge_base(project: Project) -> None:
    commits = built(project, "2", "2", "5")
    project.git("checkout", "-q", "-b", "release", commits[0])
    release = commit(project, "on the release", MODULE.format(count=2) + "# a fix\n")
    project.git("checkout", "-q", "main")
    done = bisect(project, "--good=release")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == (
        f"--good={release[:7]} is not an ancestor of --bad={commits[2][:7]}: "
        f"the search begins at the merge base {commits[0][:7]}"
    )
    assert f"{commits[2]} changed work.count from 2 to 5" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("before", "merged", "changed"), [(5, 2, "last"), (2, 5, "beside")])
def test_good_that_was_merged_in_has_the_old_value(
    project: Project, before: int, merged: int, changed: str
) -> None:
    """The good commit has 2, and is not on the line of first parents."""
    (first,) = built(project, str(before))
    project.git("checkout", "-q", "-b", "topic")
    good = commit(project, "good", MODULE.format(count=2))
    project.git("checkout", "-q", "main")
    found = {"beside": commit(project, "beside", MODULE.format(count=5) + "# edited\n")}
    project.git("merge", "-q", "-s", "ours", "--no-ff", "--no-commit", "topic")
    commit(project, "merge", MODULE.format(count=merged))
    found["last"] = commit(project, "last", MODULE.format(count=5))
    done = bisect(project, f"--good={good}")
    told = f"--good={good[:7]} was merged in: the search begins at {first[:7]}, which both branches have"
    assert done.stdout.splitlines()[0] == told
    assert (f"2 commits from {good[:7]} to {found['last'][:7]}" in done.stdout) == (changed == "last")
    assert f"{found[changed]} changed work.count from 2 to 5" in done.stdout


@pytest.mark.slow
def test_leftovers_of_a_killed_bisection_are_removed_once_unused(project: Project, tmp_path: Path) -> None:
    """A server that its test started outlives it, and works in the folders that it left."""
    gate, temporary = tmp_path / "gate", tmp_path / "temporary"
    os.mkfifo(gate)
    temporary.mkdir()
    server = f"subprocess.Popen(['cat', {str(gate)!r}], start_new_session=True, close_fds=False)"
    waits = f"import os, subprocess\nif os.path.exists({str(gate)!r}): {server}.wait()\n"
    commits = built(project, waits + MODULE.format(count=2), "5")
    own = {"TMPDIR": str(temporary)}
    command = ["-m", "pytest_opprof.cli.main", "bisect", "test_model.py::test_step", "work.count"]
    process = subprocess.Popen(
        [sys.executable, *command, f"--good={commits[0]}"],
        cwd=project.folder,
        env=environment(own),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def left() -> list[str]:
        return sorted(path.name.rpartition("-")[0] for path in temporary.glob("opprof-*-*"))

    with gate.open("w"):  # opened once the server reads from it
        process.kill()
        process.wait(timeout=60)
        assert left() == ["opprof-bisect", "opprof-worktree"]
        (temporary / "opprof-ab-left").mkdir()
        gate.unlink()
        again = project.python(*command, f"--good={commits[0]}", env=own)
        assert f"{commits[1]} changed work.count from 2 to 5" in again.stdout
        assert {"opprof-bisect", "opprof-worktree"} <= set(left()), "a process still works there"
    # The server now ends on its own and releases its lock.
    for folder in temporary.glob("opprof-*-*"):
        with (folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
    assert project.python(*command, f"--good={commits[0]}", env=own).returncode == 0
    assert left() == ["opprof-ab"], "of another kind: its own next run removes it"
    assert project.git("worktree", "list").count("\n") == 0


@pytest.mark.slow
def test_a_commit_that_hangs_is_skipped(project: Project) -> None:
    hangs = "import signal\n\ndef step():\n    signal.pause()\n"
    commits = built(project, "2", hangs, "5")
    done = bisect(project, f"--good={commits[0]}", "--timeout=30")
    assert done.returncode == 1
    skipped = next(line for line in done.stdout.splitlines() if "skipped: " in line)
    assert "no end in 30 s (--timeout)" in skipped
    assert "work.count changed from 2 to 5 in one of:" in done.stdout


def test_equal_ends_report_no_change(project: Project) -> None:
    commits = built(project, "2", "7", "2")
    project.write("model.py", MODULE.format(count=9))
    done = bisect(project, f"--good={commits[0]}")
    assert done.stdout.splitlines()[0].startswith("uncommitted changes are ignored")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        1,
        "work.count is 2 at both ends: nothing changed",
    )


@pytest.mark.slow
def test_newest_test_is_run_on_old_code(project: Project) -> None:
    """The test is newer than the change; a merge counts as one commit."""
    project.git("init", "-q", "-b", "main")
    first = commit(project, "first", MODULE.format(count=2))
    project.git("checkout", "-q", "-b", "topic")
    commit(project, "inner", MODULE.format(count=4))
    commit(project, "outer", MODULE.format(count=5))
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--no-ff", "-m", "merge topic", "topic")
    merge = project.git("rev-parse", "HEAD")
    project.write("test_model.py", TEST)
    project.commit()
    done = bisect(project, f"--good={first}")
    assert done.returncode == 0
    assert f"{merge} changed work.count from 2 to 5" in done.stdout


@pytest.mark.slow
def test_folders_above_have_the_newest_conftests_and_no_others(project: Project) -> None:
    """The command starts in a subfolder, and the ini file needs pytest's cache."""
    project.replace("pytest.ini", "addopts = ", "addopts = --ff ")
    project.write("tests/conftest.py", "raise SystemExit('not of today')")
    project.git("init", "-q", "-b", "main")
    commits = [commit(project, f"{count}", MODULE.format(count=count)) for count in (2, 5)]
    project.git("rm", "-q", "tests/conftest.py")
    project.write("conftest.py", "import pytest\n\n@pytest.fixture\ndef times():\n    return 1\n")
    project.write("tests/test_model.py", TEST.replace("test_step()", "test_step(times)"))
    project.commit()
    done = bisect(Project(project.folder / "tests"), f"--good={commits[0]}")
    assert done.returncode == 0
    assert f"{commits[1]} changed work.count from 2 to 5" in done.stdout


@pytest.mark.slow
def test_search_starts_at_the_stored_baseline(project: Project) -> None:
    commits = built(project, "2", "2", "5")
    project.git("checkout", "-q", commits[1])
    project.pytest("--opprof-save=main")
    project.git("checkout", "-q", "main")
    done = bisect(project)
    assert done.stdout.splitlines()[0] == f"1 commits from {commits[1][:7]} to {commits[2][:7]}"
    assert f"{commits[2]} changed work.count from 2 to 5" in done.stdout
    elsewhere = bisect(project, "--store=dir:elsewhere")
    assert "no commit before" in elsewhere.stderr
    assert "has a run in dir:elsewhere: name a commit where" in elsewhere.stderr


@pytest.mark.slow
def test_setup_builds_each_commit(project: Project) -> None:
    project.git("init", "-q", "-b", "main")
    project.write(".gitignore", "model.py\n")
    project.write("test_model.py", TEST)
    commits = []
    for count in (2, 3, 3):
        project.write("model.template", MODULE.format(count=count))
        commits.append(project.commit())
    done = bisect(project, f"--good={commits[0]}", "--setup=cp model.template model.py")
    assert f"{commits[1]} changed work.count from 2 to 3" in done.stdout
    failing = bisect(project, f"--good={commits[0]}", "--setup=echo no compiler >&2; exit 3")
    assert failing.returncode == 9
    told = f"opprof: --good={commits[0][:7]} cannot be measured: the {commits[0][:7]} does not build: "
    assert failing.stderr.startswith(told)
    assert failing.stderr.endswith("exit code 3: no compiler\n")


@pytest.mark.slow
def test_each_commit_has_an_environment_of_its_own(project: Project) -> None:
    project.git("init", "-q", "-b", "main")
    project.write("test_model.py", TEST)
    (project.folder / "python").mkdir()
    commits = []
    for count in (2, 3, 3):
        project.write("python/model.py", MODULE.format(count=count))
        project.git("add", "-A")
        project.git("commit", "-q", "--allow-empty", "-m", "change")
        commits.append(project.git("rev-parse", "HEAD"))
    own = (f"--setup={made_environment('python/model.py')}", f"--python={OWN_PYTHON}")
    done = bisect(project, f"--good={commits[0]}", *own)
    assert f"{commits[1]} changed work.count from 2 to 3" in done.stdout
    without = bisect(project, f"--good={commits[0]}", "--python=nobody/has/python")
    assert (without.returncode, without.stderr.count("let --setup make it")) == (9, 1)


@pytest.mark.slow
def test_checkout_code_is_not_taken_for_a_commits_code(project: Project) -> None:
    """As for a package in editable mode: each commit would have the same value."""
    commits = built(project, "2", "5")
    project.write("conftest.py", f"import sys\nsys.path.insert(0, {str(project.folder)!r})\nimport model\n")
    project.commit()
    done = bisect(project, f"--good={commits[0]}")
    assert done.returncode == 9
    assert f"import model from the head: {project.folder / 'model.py'}" in done.stderr


@pytest.mark.slow
def test_varying_metric_is_not_bisected(project: Project, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    flaky = f"import pathlib\nmarker = pathlib.Path({str(marker)!r})\nmarker.write_text(marker.read_text() + 'x' if marker.exists() else 'x')\n"
    commits = built(project, "2", flaky + MODULE.format(count="len(marker.read_text())"))
    done = bisect(project, f"--good={commits[0]}")
    assert done.returncode == 9
    assert "A metric that varies cannot be bisected" in done.stderr


@pytest.fixture(scope="module")
def history(make_project: MakeProject) -> tuple[Project, list[str]]:
    """Two commits, for arguments that are refused before anything is measured."""
    project = make_project("refused")
    return project, built(project, "2", "2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("test_model.py::test_step", "work.cpu_time_total"), "is not an exact metric"),
        (("test_model.py::test_step", "work.cout"), "unknown metric"),
        (
            ("work.count", "test_model.py::test_step"),
            "TEST comes before METRIC: opprof bisect test_model.py::test_step work.count",
        ),
        (("test_none.py::test_step", "work.count", "--good=HEAD~1"), "has no file test_none.py"),
        (("test_model.py::test_step", "work.count"), "was right: --good=REV"),
        (
            ("test_model.py::test_step", "work.count", "--good=nowhere"),
            "--good=nowhere: git knows no such commit",
        ),
        (("test_model.py::test_step", "work.count", "--good=HEAD", "--bad=HEAD~1"), "no commits lie between"),
        (("test_model.py::test_step", "work.count", "--good=HEAD"), "no commits lie between"),
        (
            ("test_model.py::test_step", "work.count", "--good=HEAD~1", "--resume"),
            "there is nothing to resume",
        ),
    ],
)
def test_invalid_arguments_are_refused(
    history: tuple[Project, list[str]], arguments: tuple[str, ...], told: str
) -> None:
    project, _ = history
    done = project.python("-m", "pytest_opprof.cli.main", "bisect", *arguments)
    assert done.returncode == 2
    assert told in done.stderr


@pytest.mark.slow
def test_interrupted_search_is_resumed(project: Project, tmp_path: Path) -> None:
    """The second newest commit hangs the first time; both ends are measured by then."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    server = f"subprocess.Popen(['cat', {str(gate)!r}], start_new_session=True, close_fds=False)"
    waits = f"import os, subprocess\nif os.path.exists({str(gate)!r}): {server}.wait()\n"
    commits = built(project, "2", waits + MODULE.format(count=5), "5")
    command = ["bisect", "test_model.py::test_step", "work.count", f"--good={commits[0]}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_opprof.cli.main", *command],
        cwd=project.folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    # Opening succeeds once the test reads from it, so the test has started and waits.
    with process, gate.open("w"):
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr.endswith("opprof: interrupted\n")
    gate.unlink()
    kept = json.loads((project.folder / STATE).read_text())["measured"]
    assert {commits[0], commits[2]} == set(kept)
    assert project.git("worktree", "list").count("\n") == 0
    done = bisect(project, f"--good={commits[0]}", "--resume")
    assert done.returncode == 0
    assert f"{commits[1]} changed work.count from 2 to 5" in done.stdout
