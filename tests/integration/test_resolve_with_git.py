"""The stored run that a session is compared with, in real repositories."""

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.baselines.archive import Archive, open_store
from pytest_opprof.baselines.git import CommitsAtHand, Git
from pytest_opprof.baselines.resolve import Resolved, candidates, find_run, resolve_baseline
from pytest_opprof.errors import MissingBaselineError
from pytest_opprof.results.files import write_run
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Commit, Environment

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HERE = Environment(fingerprint={"python": "3.11", "torch": "2.13.0"})
OTHER = Environment(fingerprint={"python": "3.11", "torch": "2.12.0"})
TEST = simple_test({"aten::mul": 1})


class Project:
    """A repository with a store in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store: Archive = open_store("dir:.opprof", root=folder)
        self._saved = 0

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
            cwd=self.folder,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, text: str) -> str:
        (self.folder / "file.txt").write_text(text)
        self.git("add", "file.txt")
        self.git("commit", "-q", "-m", text)
        return self.git("rev-parse", "HEAD")

    def save(
        self, name: str, commit: str | None, *, dirty: bool = False, environment: Environment = HERE
    ) -> None:
        """Save a run; each is measured a day after the one before."""
        self._saved += 1
        self.store.save(
            name,
            simple_run(
                TEST,
                run_id=f"run{self._saved}",
                created=NOW - timedelta(days=20 - self._saved),
                commit=Commit(id=commit, dirty=dirty) if commit else None,
                environment=environment,
            ),
            collected=Collected(),
        )

    def resolve(self, wanted: str) -> Resolved:
        return resolve_baseline(self.store, wanted, repository=self.folder, now=NOW, here=HERE)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    project = Project(tmp_path)
    project.git("init", "-q", "-b", "main")
    return project


def test_merge_base_is_preferred(project: Project) -> None:
    first = project.commit("one")
    project.git("switch", "-q", "-c", "topic")
    project.commit("topic")
    project.git("switch", "-q", "main")
    second = project.commit("two")
    project.git("switch", "-q", "topic")
    project.save("main", first)
    project.save("main", second)
    found = project.resolve("main")
    assert found.run.commit is not None
    assert found.run.commit.id == first
    assert found.label == f"main@{first[:7]} (merge-base, 19 days old)"
    assert found.notes == ()


def test_nearest_ancestor_stands_in(project: Project) -> None:
    first = project.commit("one")
    second = project.commit("two")
    project.commit("three")
    project.save("main", second)
    project.save("main", first)
    found = project.resolve("main")
    assert found.run.commit is not None
    assert found.run.commit.id == second
    assert "(nearest ancestor, " in found.label


def test_latest_is_taken_with_a_note(project: Project) -> None:
    project.commit("one")
    project.git("switch", "-q", "-c", "elsewhere")
    other = project.commit("other")
    project.git("switch", "-q", "main")
    project.save("main", other)
    found = project.resolve("main")
    assert "(latest, " in found.label
    (note,) = found.notes
    assert note == (
        f"using the latest run named 'main': the commit {other[:7]} it was stored under is not an ancestor of HEAD"
    )


def test_candidates_come_nearest_first_and_unread(project: Project) -> None:
    first = project.commit("one")
    second = project.commit("two")
    project.git("switch", "-q", "-c", "elsewhere", first)
    other = project.commit("other")
    project.git("switch", "-q", "main")
    project.save("main", first)
    project.save("main", second, dirty=True)
    project.save("main", second)
    project.save("main", other)
    project.save("main", None)
    for entry in project.store.entries("main"):
        os.truncate(entry.place, 200)  # enough to know its time, but unreadable
    found = list(candidates(project.store, "main", repository=project.folder, here=HERE))
    assert [(one.entry.commit, one.entry.is_dirty, one.relation) for one in found] == [
        (second, False, "merge-base"),
        (second, True, "merge-base"),
        (first, False, "nearest ancestor"),
        (None, False, "latest"),
        (other, False, "latest"),
    ]
    assert [bool(one.note) for one in found] == [False, False, False, True, True]


def test_given_start_replaces_the_checked_out_commit(project: Project) -> None:
    """A job for a foreign pull request has its target branch checked out."""
    first, second, third = (project.commit(text) for text in ("one", "two", "three"))
    for commit in (first, third):
        project.save("main", commit)
    found = list(candidates(project.store, "main", repository=project.folder, here=HERE, start=second))
    assert [(each.entry.commit, each.relation) for each in found] == [
        (first, "nearest ancestor"),
        (third, "latest"),
    ]
    assert found[1].note.endswith(f"it was stored under is not an ancestor of {second[:7]}")
    (exact, *_) = candidates(project.store, "main", repository=project.folder, here=HERE, start=third)
    assert (exact.entry.commit, exact.relation) == (third, "merge-base")
    (by_revision, *_) = candidates(project.store, "HEAD", repository=project.folder, here=HERE, start=first)
    assert by_revision.entry.commit == first


def test_unknown_start_is_found_by_its_commit_id(project: Project) -> None:
    project.save("main", project.commit("one"))
    project.save("main", "f" * 40)
    (found, *_) = candidates(project.store, "main", repository=project.folder, here=HERE, start="f" * 40)
    assert (found.entry.commit, found.relation) == ("f" * 40, "merge-base")


def test_name_need_not_be_a_branch(project: Project) -> None:
    commit = project.commit("one")
    project.save("release-1", commit)
    assert "(this commit, " in project.resolve("release-1").label


def test_branch_at_origin_counts(project: Project, tmp_path: Path) -> None:
    first = project.commit("one")
    project.save("main", first)
    clone = tmp_path / "clone"
    project.git("clone", "-q", str(project.folder), str(clone))
    checkout = Project(clone)
    checkout.git("switch", "-q", "-c", "topic")
    checkout.git("branch", "-q", "-D", "main")
    found = resolve_baseline(project.store, "main", repository=clone, now=NOW, here=HERE)
    assert "(merge-base, " in found.label


@pytest.mark.parametrize("here", ["behind", "ahead"])
def test_nearer_of_a_branch_here_and_at_origin_counts(project: Project, tmp_path: Path, here: str) -> None:
    """Who fetches, and branches off origin/main, seldom moves a main of their own."""
    first = project.commit("one")
    clone = tmp_path / "clone"
    project.git("clone", "-q", str(project.folder), str(clone))
    checkout = Project(clone)
    second = (checkout if here == "ahead" else project).commit("two")
    for commit in (first, second):
        checkout.save("main", commit)
    checkout.git("fetch", "-q")
    checkout.git("switch", "-q", "--no-track", "-c", "topic", "main" if here == "ahead" else "origin/main")
    tip = checkout.commit("topic")
    found = checkout.resolve("main")
    assert found.label == f"main@{second[:7]} (merge-base, 18 days old)"
    assert Git(clone).branch_point(tip, "main") == second
    assert Git(clone).branch_point(tip, "main~0") == (second if here == "ahead" else first), "a revision here"


def test_shallow_clone_says_so(project: Project, tmp_path: Path) -> None:
    first = project.commit("one")
    project.commit("two")
    project.save("main", first)
    clone = tmp_path / "clone"
    project.git("clone", "-q", "--depth=1", f"file://{project.folder}", str(clone))
    found = resolve_baseline(project.store, "main", repository=clone, now=NOW, here=HERE)
    assert "(latest, " in found.label
    assert found.notes[0].endswith(
        " as far as this shallow clone shows (git fetch --unshallow origin brings the history; in CI: fetch-depth: 0)"
    )
    with pytest.raises(MissingBaselineError, match="git fetch --unshallow origin brings the history"):
        resolve_baseline(project.store, "HEAD", repository=clone, now=NOW, here=HERE)


def test_revision_finds_runs_of_any_name(project: Project) -> None:
    first = project.commit("one")
    project.commit("two")
    project.save("nightly", first)
    found = project.resolve("HEAD~1")
    assert found.run.title == f"nightly@{first[:7]}"


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_newest_run_of_a_revision_is_taken(project: Project, names: tuple[str, str]) -> None:
    first = project.commit("one")
    for name in names:
        project.save(name, first)
    assert project.resolve("HEAD").run.name == names[-1]


def test_dirty_runs_count_and_are_reported(project: Project) -> None:
    commit = project.commit("one")
    project.save("main", commit, dirty=True)
    found = project.resolve("main")
    assert found.run.title == f"main@{commit[:7]}+dirty"
    assert found.notes == (f"main@{commit[:7]}+dirty was measured with uncommitted changes",)


def test_clean_run_of_a_commit_comes_before_a_later_dirty_one(project: Project) -> None:
    commit = project.commit("one")
    project.save("main", commit)
    project.save("main", commit, dirty=True)
    for found in (
        project.resolve("main").run,
        project.resolve("HEAD").run,
        find_run("main", store=project.store),
    ):
        assert found.title == f"main@{commit[:7]}"
    project.save("main", project.commit("two"), dirty=True)
    title = f"main@{project.git('rev-parse', 'HEAD')[:7]}+dirty"
    assert find_run("main", store=project.store).title == title, "of another commit, it is the newest"


def test_unborn_branch_takes_the_latest(project: Project) -> None:
    project.save("main", None)
    found = project.resolve("main")
    assert found.notes == ("using the latest run named 'main': the repository has no commit yet",)


def test_no_repository_takes_the_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    project = Project(tmp_path)
    project.save("main", None)
    project.save("main", None)
    found = project.resolve("main")
    assert found.run.run_id == "run2"
    assert found.notes == ("using the latest run named 'main': this is not a git repository",)


def test_no_git_takes_the_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    project = Project(tmp_path)
    project.save("main", None)
    assert project.resolve("main").notes == ("using the latest run named 'main': git is not installed",)


def test_missing_baseline_says_how_to_record_one(project: Project) -> None:
    project.commit("one")
    with pytest.raises(MissingBaselineError) as caught:
        project.resolve("elsewhere")
    assert str(caught.value) == (
        "no baseline 'elsewhere' in dir:.opprof (it is empty). "
        "Record one on that branch: pytest --opprof-save=elsewhere"
    )
    project.save("release-1", None)
    with pytest.raises(MissingBaselineError, match=r"\(it has: release-1\), and no run of commit"):
        project.resolve("main")


@pytest.mark.parametrize("wanted", ["", "-x", "--upload-pack=x", "a b", "HEAD^{/x}", "\n"])
def test_invalid_revisions_have_no_baseline(project: Project, wanted: str) -> None:
    project.commit("one")
    with pytest.raises(MissingBaselineError):
        project.resolve(wanted)


def test_no_commit_is_missing_if_git_fails(
    project: Project, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.commit("one")
    assert CommitsAtHand(project.folder).lacks("f" * 40)
    programs = tmp_path_factory.mktemp("programs")
    # First git is missing, then it is killed.
    for program in (None, "#!/bin/sh\nkill -9 $$\n"):
        history = CommitsAtHand(project.folder)
        with monkeypatch.context() as broken:
            if program is not None:
                (programs / "git").write_text(program)
                (programs / "git").chmod(0o755)
            broken.setenv("PATH", str(programs))
            assert not history.lacks("f" * 40)
        assert history.git.problem in {"git is not installed", "git does not answer (ended by signal 9)"}


def test_imported_counts_are_chosen_last(project: Project) -> None:
    """In a folder, refs or objects they stay as pushed, and costs may have fallen since."""
    commit = project.commit("one")
    counts = open_store("counts:ci", root=project.folder)
    counts.save("main", simple_run(simple_test({"aten::mul": 9})), collected=Collected())
    reviewed = resolve_baseline(counts, "main", repository=project.folder, now=NOW, here=HERE)
    assert (reviewed.label, reviewed.notes) == ("main (reviewed counts)", ())
    project.store.take(counts, ["main"])
    only = project.resolve("main")
    assert only.label == "main (latest)"
    assert only.notes == (
        "using the latest run named 'main': it was copied from a counts: store and has no commit",
    )
    project.save("main", commit)
    assert "(merge-base, " in project.resolve("main").label
    found = list(candidates(project.store, "main", repository=project.folder, here=HERE))
    assert [one.relation for one in found] == ["merge-base", "latest"]


def test_command_takes_files_names_and_commits(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = project.commit("one")
    second = project.commit("two")
    project.save("main", first)
    project.save("main", second)
    write_run(tmp_path / "run.json", simple_run(TEST))
    assert find_run(str(tmp_path / "run.json"), store=project.store).name is None
    latest = find_run("main", store=project.store).commit
    chosen = find_run(f"main@{first[:7]}", store=project.store).commit
    assert latest is not None
    assert chosen is not None
    assert (latest.id, chosen.id) == (second, first)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main").mkdir()
    assert find_run("main", store=project.store).commit == latest, "not the folder"
    (tmp_path / "folder").mkdir()
    with pytest.raises(MissingBaselineError, match="folder: it is a folder, and no baseline 'folder' in"):
        find_run("folder", store=project.store)
    for text in ("nothing", "main@ffff", "main@", "nothing@1", "x" * 5_000):
        with pytest.raises(MissingBaselineError, match=f"{text}: there is no such file, and no baseline"):
            find_run(text, store=project.store)


def test_an_ancestor_from_an_environment_like_this_one_is_preferred(project: Project) -> None:
    first, second, third = (project.commit(text) for text in ("one", "two", "three"))
    project.save("main", first)
    project.save("main", second, environment=OTHER)
    project.save("main", third, environment=OTHER)
    found = project.resolve("main")
    assert found.run.commit is not None
    assert found.run.commit.id == first
    assert "(nearest ancestor, " in found.label
    assert found.notes == (
        f"main@{third[:7]} was measured in another environment (torch 2.12.0 -> 2.13.0): "
        f"using main@{first[:7]}, the nearest run that matches",
    )


def test_ancestor_is_preferred_to_a_non_ancestor(project: Project) -> None:
    first = project.commit("one")
    project.save("main", first, environment=OTHER)
    project.git("switch", "-q", "-c", "elsewhere")
    project.save("main", project.commit("other"))
    project.git("switch", "-q", "main")
    found = project.resolve("main")
    assert found.run.commit is not None
    assert found.run.commit.id == first
    assert found.notes == (
        f"main@{first[:7]} was measured in another environment (torch 2.12.0 -> 2.13.0). No nearby run "
        "matches, so metrics that depend on the environment are inconclusive",
    )


def test_run_from_the_future_is_reported(project: Project) -> None:
    project.save("main", project.commit("one"))
    store, ahead = project.store, NOW - timedelta(days=30)
    found = resolve_baseline(store, "main", repository=project.folder, now=ahead, here=HERE)
    assert found.label.endswith(", dated 11 days ahead of this clock)")
