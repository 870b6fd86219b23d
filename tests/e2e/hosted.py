"""A repository on a server, with clones for CI jobs."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from e2e.project import Project, environment
from support.forges.workflow_steps import Runner

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
    """A repository that is cloned for each job, and what differs between jobs.

    Attributes:
        origin: The bare repository.
        work: Where commits are made.
        folder: The parent folder of the clones.
    """

    origin: Path
    work: Project
    folder: Path

    def commit(self, branch: str = "main") -> str:
        """Commit everything, push it to a branch and return the commit's name."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "change")
        self.git("push", "--quiet", "origin", f"HEAD:{branch}")
        return self.git("rev-parse", "HEAD").strip()

    def git(self, *arguments: str) -> str:
        """Output of git in the work tree."""
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
        """The refs of pushed baselines."""
        return self.git("ls-remote", "origin", "refs/opprof/*").split()[1::2]

    def clone(self, commit: str) -> Path:
        """A new clone at a commit."""
        clone = self.folder / f"job-{len(list(self.folder.iterdir()))}" / "checkout"
        subprocess.run(["git", "clone", "--quiet", self.origin, clone], env=environment(), check=True)
        subprocess.run(
            ["git", "checkout", "--quiet", "--detach", commit], cwd=clone, env=environment(), check=True
        )
        return clone

    def job(self, commit: str, **variables: str) -> Runner:
        """A job in its own clone at a commit."""
        clone = self.clone(commit)
        temporary = clone.parent / "temporary"
        temporary.mkdir()
        given = {"GITHUB_SERVER_URL": "https://github.example", **variables}
        return Runner(
            folder=clone,
            temporary=temporary,
            variables=environment(given),
            context={"github.token": TOKEN, "runner.temp": str(temporary)},
        )

    def push(self, commit: str, *, protected: str = "true", of: str = "branch") -> Runner:
        """A job of a push to main, or of a tag with that name."""
        return self.job(
            commit,
            GITHUB_EVENT_NAME="push",
            GITHUB_REF_NAME="main",
            GITHUB_REF_TYPE=of,
            GITHUB_REF_PROTECTED=protected,
        )

    def pull_request(self, commit: str) -> Runner:
        """A job of a pull request to main, from a branch that is named like main."""
        return self.job(
            commit,
            GITHUB_EVENT_NAME="pull_request",
            GITHUB_REF_NAME="17/merge",
            GITHUB_REF_PROTECTED="false",
            GITHUB_HEAD_REF="main",
            GITHUB_BASE_REF="main",
        )


def new_forge(folder: Path) -> Forge:
    origin, clones = folder / "origin.git", folder / "jobs"
    clones.mkdir()
    made = Forge(origin=origin, work=Project(folder / "work"), folder=clones)
    subprocess.run(
        ["git", "init", "--quiet", "--bare", "--initial-branch=main", origin], env=environment(), check=True
    )
    made.git("init", "--quiet", "--initial-branch=main")
    made.git("remote", "add", "origin", str(origin))
    made.work.write("test_it.py", TESTS_THAT_LOOK_AROUND)
    made.work.write(".gitignore", "__pycache__/\n.pytest_cache/\n")
    return made
