"""The jobs for projects on GitLab: their scripts, run as a runner does, in clones of a real repository."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from e2e.hosted import TESTS_THAT_LOOK_AROUND, Forge, new_forge
from e2e.project import INI, WORK_TWICE, environment
from support.forges.gitlab_api import NUMBER, PROJECT, GitLabApi
from support.forges.workflow_steps import REPOSITORY, parsed

from pytest_opprof.baselines.git import Git

TEMPLATE = REPOSITORY / "templates" / "opprof.gitlab-ci.yml"
PATHS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    return new_forge(tmp_path)


def run_job(name: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a job's script as GitLab's runner does in an image without bash: all parts in one shell."""
    document = parsed(TEMPLATE)
    job = document[name]
    done = subprocess.run(
        ["sh", "-e"],
        input="\n".join(job["script"]),
        cwd=folder,
        env=environment({**document["variables"], **job.get("variables", {}), "PATH": PATHS, **variables}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    print(done.stdout, done.stderr, sep="\n")
    return done


def measure(forge: Forge, commit: str, **variables: str) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Run the measuring job; return its clone and how it ended."""
    folder = forge.clone(commit)
    given = {
        "CI_PROJECT_URL": str(forge.origin.with_suffix("")),
        "CI_PROJECT_PATH": "origin",
        "CI_PROJECT_DIR": str(folder),
        "CI_SERVER_URL": "https://gitlab.example",
        "CI_COMMIT_BRANCH": "main",
        "CI_COMMIT_REF_NAME": "main",
        "CI_COMMIT_REF_PROTECTED": "true",
        "CI_PIPELINE_SOURCE": "push",
        "CI_JOB_TOKEN": "a job's",
        "OPPROF_PUSH_TOKEN": "glpat-of-the-job",
    }
    return folder, run_job("opprof-measure", folder, **{**given, **variables})


@pytest.mark.slow
def test_a_merge_request_is_compared_and_gets_its_note(forge: Forge) -> None:
    """In a folder with its own configuration, which is another project."""
    pytest.importorskip("httpx", reason="httpx is not installed: see the dev extra")
    forge.work.write("a/pytest.ini", INI)
    forge.work.write("a/test_it.py", TESTS_THAT_LOOK_AROUND)
    before, saved = measure(forge, forge.commit(), OPPROF_WORKING_DIRECTORY="a")
    assert saved.returncode == 0, "the test has seen no token that pushes"
    assert forge.baselines == ["refs/opprof/a%3Amain"]

    forge.work.write("a/test_it.py", WORK_TWICE)
    head = forge.commit("topic")
    folder, compared = measure(
        forge,
        head,
        CI_PIPELINE_SOURCE="merge_request_event",
        CI_COMMIT_BRANCH="",
        CI_COMMIT_REF_NAME="topic",
        CI_COMMIT_REF_PROTECTED="false",
        CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main",
        OPPROF_WORKING_DIRECTORY="a",
    )
    assert compared.returncode == 1
    assert "REGRESSED: 1 more range in each step than main@" in compared.stdout
    artifacts = parsed(TEMPLATE)["opprof-measure"]["artifacts"]
    for name in (*artifacts["paths"], *artifacts["reports"].values()):
        assert (folder / name).exists(), name
    for each, count in ((before, 1), (folder, 2)):
        metrics = (each / artifacts["reports"]["metrics"]).read_text(encoding="utf-8")
        assert f'opprof_ranges_count{{test="test_it.py::test_it"}} {count}\n' in metrics, (
            "GitLab compares both"
        )

    api = GitLabApi()
    api.head = head
    noted = run_job(
        "opprof-note",
        folder,
        GITLAB_CI="true",
        CI_API_V4_URL=f"{api.server.url}/api/v4",
        CI_PROJECT_ID=str(PROJECT),
        CI_MERGE_REQUEST_IID=str(NUMBER),
        CI_COMMIT_SHA=head,
        CI_PIPELINE_ID="5",
        CI_JOB_ID="50",
        CI_PROJECT_DIR=str(folder),
        CI_PROJECT_URL="https://gitlab.example/o/p",
        GITLAB_TOKEN="secret",  # noqa: S106 - nobody's
        OPPROF_WORKING_DIRECTORY="a",
        NO_PROXY="127.0.0.1",
        no_proxy="127.0.0.1",
    )
    api.close()
    assert noted.returncode == 0
    (body,) = api.bodies
    assert "opprof: REGRESSED: 1 test" in body
    assert f"https://gitlab.example/o/p/-/blob/{head}/a/test_it.py#L" in body


def test_a_branch_that_is_not_protected_gets_no_baseline(forge: Forge) -> None:
    _, done = measure(forge, forge.commit(), CI_COMMIT_REF_PROTECTED="false")
    assert done.returncode == 1
    assert "no baseline 'main'" in done.stdout + done.stderr
    assert forge.baselines == []


def test_a_protected_tag_is_not_a_branch(forge: Forge) -> None:
    _, done = measure(forge, forge.commit(), CI_COMMIT_BRANCH="", OPPROF_ARGUMENTS="--version")
    assert done.returncode == 0, "there is nothing to push"


def test_a_fork_gets_baselines_and_branch_of_its_target(forge: Forge) -> None:
    base = forge.commit()
    fork = replace(forge, origin=forge.origin.with_name("fork.git"))
    shutil.copytree(forge.origin, fork.origin)
    newer = forge.commit()
    forge.git("push", "--quiet", "origin", "HEAD:refs/opprof/main")
    folder, _ = measure(
        fork,
        base,
        CI_PROJECT_PATH="fork",
        CI_REPOSITORY_URL=str(fork.origin),
        CI_PIPELINE_SOURCE="merge_request_event",
        CI_MERGE_REQUEST_PROJECT_PATH="origin",
        CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main",
        OPPROF_ARGUMENTS="--version",
    )
    here = Git(folder)
    assert here.commit_of("refs/opprof/main") == here.commit_of("origin/main") == newer != base


def test_no_shell_looks_at_an_argument(forge: Forge) -> None:
    marks = [forge.folder.parent / name for name in ("substituted", "separated", "named")]
    _, done = measure(
        forge,
        forge.commit(),
        OPPROF_ARGUMENTS=f"-k\ntest_it or $(touch {marks[0]})\n-q; touch {marks[1]}",
        OPPROF_BASELINE=f"`touch {marks[2]}`",
    )
    assert done.returncode, "these are not arguments of pytest"
    assert not [mark for mark in marks if mark.exists()]
