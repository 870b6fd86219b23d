"""The actions for other repositories, run step by step as a runner does, in clones of real repositories."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e.project import INI, WORK_TWICE, Project, environment
from workflow_steps import REPOSITORY, Runner

from pytest_opprof.results.files import read_run

MEASURE = REPOSITORY / ".github" / "actions" / "measure" / "action.yml"
TOKEN = "ghs_of-the-job"  # noqa: S105 - nobody's
TESTS_THAT_LOOK_AROUND = """\
    import os, pytest
    from pytest_opprof import record_function

    @pytest.mark.profile
    def test_it():
        assert not [name for name, value in os.environ.items() if "of-the-job" in value]
        with record_function("work"):
            pass
"""


@dataclass(frozen=True, kw_only=True)
class Forge:
    """A repository that is cloned for each job, and what differs from job to job.

    Attributes:
        origin: The bare repository.
        work: Where its commits are made.
        folder: Where clones go.
    """

    origin: Path
    work: Project
    folder: Path

    def commit(self, branch: str = "main") -> str:
        """Commit what there is, push it to a branch, and give the commit's name."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "change")
        self.git("push", "--quiet", "origin", f"HEAD:{branch}")
        return self.git("rev-parse", "HEAD").strip()

    def git(self, *arguments: str) -> str:
        """What git says in the work tree."""
        return subprocess.run(
            ["git", *arguments],
            cwd=self.work.folder,
            env=environment(),
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    @property
    def baselines(self) -> list[str]:
        """The refs of baselines that were pushed."""
        return self.git("ls-remote", "origin", "refs/opprof/*").split()[1::2]

    def job(self, commit: str, **variables: str) -> Runner:
        """A job in a clone of its own at a commit."""
        folder = self.folder / f"job-{len(list(self.folder.iterdir()))}"
        clone, temporary = folder / "checkout", folder / "temporary"
        temporary.mkdir(parents=True)
        subprocess.run(["git", "clone", "--quiet", self.origin, clone], env=environment(), check=True)
        subprocess.run(
            ["git", "checkout", "--quiet", "--detach", commit], cwd=clone, env=environment(), check=True
        )
        given = {"GITHUB_SERVER_URL": "https://github.example", **variables}
        return Runner(
            folder=clone,
            temporary=temporary,
            variables=environment(given),
            context={"github.token": TOKEN, "runner.temp": str(temporary)},
        )

    def push(self, commit: str, *, protected: str = "true") -> Runner:
        """A job of a push to main."""
        return self.job(
            commit, GITHUB_EVENT_NAME="push", GITHUB_REF_NAME="main", GITHUB_REF_PROTECTED=protected
        )

    def pull_request(self, commit: str) -> Runner:
        """A job of a pull request to main, by a branch that would like to be called so too."""
        return self.job(
            commit,
            GITHUB_EVENT_NAME="pull_request",
            GITHUB_REF_NAME="17/merge",
            GITHUB_REF_PROTECTED="false",
            GITHUB_HEAD_REF="main",
            GITHUB_BASE_REF="main",
        )


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    origin, clones = tmp_path / "origin.git", tmp_path / "jobs"
    clones.mkdir()
    made = Forge(origin=origin, work=Project(tmp_path / "work"), folder=clones)
    subprocess.run(
        ["git", "init", "--quiet", "--bare", "--initial-branch=main", origin], env=environment(), check=True
    )
    made.git("init", "--quiet", "--initial-branch=main")
    made.git("remote", "add", "origin", str(origin))
    made.work.write("test_it.py", TESTS_THAT_LOOK_AROUND)
    made.work.write(".gitignore", "__pycache__/\n.pytest_cache/\n")
    return made


def measure(job: Runner, **inputs: str) -> Runner:
    job.action(MEASURE, python=sys.executable, **inputs)
    return job


def test_a_push_saves_and_a_pull_request_is_compared(forge: Forge) -> None:
    base = forge.commit()
    saved = measure(forge.push(base))
    assert saved.failed is None
    assert saved.context["steps.plan.outputs.mode"] == "save"
    assert forge.baselines == ["refs/opprof/main"]

    same = measure(forge.pull_request(base))
    assert same.failed is None

    forge.work.write("test_it.py", WORK_TWICE)
    head = forge.commit("topic")
    more = measure(forge.pull_request(head))
    assert more.failed == ("Measure", 1), "the job is as red as its tests"
    assert "REGRESSED: 1 more range in each step than main@" in more.printed
    assert more.context["steps.plan.outputs.mode"] == "compare"

    # Uploads are GitHub's; what they would be given lies there, of a run that failed too.
    assert more.used["Upload what was measured"]["name"] == "opprof-run"
    document = Path(more.used["Upload what was measured"]["path"])
    assert document.name == "opprof-run.json"
    assert [path.name for path in document.parent.iterdir()] == [document.name]
    run = read_run(document)
    assert run.commit is not None
    assert run.commit.id == head
    (trace,) = Path(more.used["Upload traces"]["path"]).rglob("*.json*")
    assert trace.stat().st_size

    assert forge.baselines == ["refs/opprof/main"], "a pull request writes none"


def test_a_branch_that_is_not_protected_gets_no_baseline(forge: Forge) -> None:
    job = measure(forge.push(forge.commit(), protected="false"))
    assert "::notice::opprof: this branch is not protected" in job.printed
    assert "no baseline 'main'" in job.printed, "a gate that has nothing to compare with is not green"
    assert job.failed == ("Measure", 1)
    assert forge.baselines == []


def test_failed_tests_push_nothing(forge: Forge) -> None:
    forge.work.write("test_other.py", "def test_other():\n    assert 0\n")
    job = measure(forge.push(forge.commit()))
    assert job.failed == ("Measure", 1)
    assert forge.baselines == []
    assert "Upload what was measured" in job.used


def test_no_shell_looks_at_an_input(forge: Forge) -> None:
    commit = forge.commit()
    marks = [forge.folder / name for name in ("substituted", "separated", "named")]
    job = measure(
        forge.push(commit),
        arguments=f"-k\ntest_it or $(touch {marks[0]})\n-q; touch {marks[1]}\n",
        baseline=f"$(touch {marks[2]})",
    )
    assert job.failed is not None, "these are no arguments of pytest"
    assert not [mark for mark in marks if mark.exists()]


def test_arguments_are_one_a_line(forge: Forge) -> None:
    forge.work.write("test_other.py", "def test_other():\n    assert 0\n")
    job = measure(forge.push(forge.commit()), arguments="-k\ntest_it and not other\n\n", baseline="release")
    assert job.failed is None
    assert forge.baselines == ["refs/opprof/release"]


def test_another_store_is_neither_fetched_nor_pushed(forge: Forge) -> None:
    job = forge.push(forge.commit())
    store = forge.folder / "kept"
    measure(job, store=f"dir:{store}")
    assert job.failed is None
    assert len(list(store.rglob("*.json"))) == 1
    assert forge.baselines == []


def test_a_folder_of_the_checkout_has_its_own_tests(forge: Forge) -> None:
    forge.work.write("package/pytest.ini", INI)
    forge.work.write("package/test_inner.py", WORK_TWICE)
    job = measure(forge.push(forge.commit()), working_directory="package")
    assert job.failed is None
    run = read_run(Path(job.used["Upload what was measured"]["path"]))
    assert [test.node_id for test in run.tests] == ["test_inner.py::test_it"]


def test_the_token_goes_to_the_forge_alone_and_is_masked(forge: Forge) -> None:
    """Git itself is asked for what it would send: what was given for one step is there in no other."""
    job = forge.pull_request(forge.commit())
    shown = forge.folder / "shown"
    bin_folder = forge.folder / "bin"
    bin_folder.mkdir()
    git = bin_folder / "git"
    git.write_text(
        f'#!/bin/sh\nPATH="{os.environ["PATH"]}"\n'
        f'git config --get-urlmatch http.extraheader https://github.example/o/p >> "{shown}"\n'
        f'exec git "$@"\n',
        encoding="utf-8",
    )
    git.chmod(0o755)
    job.variables = {**job.variables, "PATH": f"{bin_folder}:{job.variables['PATH']}"}
    measure(job)
    headers = set(shown.read_text(encoding="utf-8").splitlines())
    assert len(headers) == 1
    (header,) = headers
    secret = header.removeprefix("AUTHORIZATION: basic ")
    assert f"::add-mask::{secret}\n" in job.printed
    assert TOKEN not in job.printed
