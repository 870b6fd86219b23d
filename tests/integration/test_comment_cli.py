"""``opprof comment`` in the job that compares, at GitHub and at GitLab."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.documents.compared import cloning, compared, slower
from support.documents.strategies import simple_run, simple_test
from support.forges.github_api import HEAD, GitHubApi, forbidden, pull_request_event, workflow_run_event
from support.forges.gitlab_api import NUMBER, PROJECT, GitLabApi

from pytest_opprof.cli.main import main
from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.document import write_comparison
from pytest_opprof.compare.timing.document import write_time_comparison
from pytest_opprof.forge.sticky import Marker, sticky_key
from pytest_opprof.results.files import write_run
from pytest_opprof.results.run import Commit

pytest.importorskip("httpx", reason="httpx is not installed: see the dev extra")

VARIABLES = ("GITHUB_", "GITLAB_", "CI_", "GH_")


def comparison_of(before: int, after: int) -> Comparison:
    base, head = (simple_run(simple_test({"aten::mul": count}, processes=2)) for count in (before, after))
    return compared(base, head)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Comparisons, and an environment outside of any job."""
    for name in list(os.environ):
        if name.startswith(VARIABLES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.chdir(tmp_path)
    write_comparison(tmp_path / "risen.json", comparison_of(4, 9))
    write_comparison(tmp_path / "same.json", comparison_of(4, 4))
    return tmp_path


@pytest.fixture
def github(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHubApi]:
    """A job of GitHub Actions."""
    api = GitHubApi()
    (folder / "event.json").write_text(json.dumps(pull_request_event()), encoding="utf-8")
    for name, value in {
        "GITHUB_API_URL": api.server.url,
        "GITHUB_TOKEN": "secret",
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_RUN_NUMBER": "4",
        "GITHUB_RUN_ATTEMPT": "2",
        "GITHUB_RUN_ID": "90",
        "GITHUB_REF": "refs/pull/17/merge",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "owner/project",
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }.items():
        monkeypatch.setenv(name, value)
    yield api
    api.close()


@pytest.fixture
def gitlab(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitLabApi]:
    """A job of GitLab CI."""
    api = GitLabApi()
    for name, value in {
        "GITLAB_CI": "true",
        "GITLAB_TOKEN": "secret",
        "CI_API_V4_URL": f"{api.server.url}/api/v4",
        "CI_PROJECT_ID": str(PROJECT),
        "CI_MERGE_REQUEST_IID": str(NUMBER),
        "CI_COMMIT_SHA": HEAD,
        "CI_PIPELINE_ID": "90",
        "CI_JOB_ID": "900",
        "CI_JOB_URL": "https://gitlab.example.org/job",
    }.items():
        monkeypatch.setenv(name, value)
    yield api
    api.close()


def test_comparison_is_commented_in_its_own_job(github: GitHubApi, folder: Path) -> None:
    assert main(["comment", "risen.json"]) == 0
    (body,) = github.bodies
    key = sticky_key("owner/project", 17, "default")
    assert Marker.of(body) == Marker(key=key, head=HEAD, run=4, attempt=2)
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    for page in (body, summary):
        assert "### opprof: REGRESSED: 1 test" in page
        assert "the pull request's own" not in page, "whoever ran this is trusted already"
        assert "https://github.com/owner/project/actions/runs/90" in page


def test_two_runs_are_compared_and_commented(github: GitHubApi, folder: Path) -> None:
    for name, count in (("base", 4), ("head", 9)):
        write_run(folder / f"{name}.json", simple_run(simple_test({"aten::mul": count}, processes=2)))
    assert main(["comment", "--base=base.json", "--head=head.json"]) == 0
    assert "REGRESSED" in github.bodies[0]
    assert main(["comment", "--base=base.json", "--head=head.json", "--gate=ops.count=off"]) == 0
    assert "REGRESSED" not in github.bodies[0]


def measured(commit: Commit | None) -> Comparison:
    """A comparison whose causes have lines, of this commit."""
    found = cloning(places={"step, model.py:31": 2})
    return replace(found, head=replace(found.head, commit=commit))


MERGE = "c" * 40
LINKED = {
    "head": (Commit(id=HEAD, dirty=False), f"/blob/{HEAD}/model.py#L31"),
    "merge": (Commit(id=MERGE, dirty=False), f"/blob/{MERGE}/model.py#L31"),
    "edited": (Commit(id=HEAD, dirty=True), None),
    "unknown": (None, None),
}


@pytest.mark.parametrize("name", LINKED)
@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_lines_are_linked_in_the_measured_commit(
    request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch, forge: str, name: str
) -> None:
    api = request.getfixturevalue(forge)
    monkeypatch.setenv("GITHUB_SHA", MERGE)
    monkeypatch.setenv("CI_COMMIT_SHA", MERGE)
    monkeypatch.setenv("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", HEAD)
    monkeypatch.setenv("CI_PROJECT_URL", "https://gitlab.example.org/owner/project")
    commit, address = LINKED[name]
    write_comparison(folder / "new.json", measured(commit))
    assert main(["comment", "new.json"]) == 0
    (body,) = api.bodies
    assert "model.py:31" in body
    assert address in body if address else "/blob/" not in body


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_lines_are_linked_below_the_start_folder(
    request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch, forge: str
) -> None:
    api = request.getfixturevalue(forge)
    monkeypatch.setenv("CI_PROJECT_URL", "https://gitlab.example.org/owner/project")
    subprocess.run(["git", "init", "-q", folder], check=True)
    start = folder / "packages" / "a b"
    start.mkdir(parents=True)
    monkeypatch.chdir(start)
    write_comparison(start / "new.json", measured(Commit(id=HEAD, dirty=False)))
    assert main(["comment", "new.json"]) == 0
    assert f"/blob/{HEAD}/packages/a%20b/model.py#L31" in api.bodies[0]


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_comparison_of_another_commit_is_refused(
    request: pytest.FixtureRequest, folder: Path, capsys: pytest.CaptureFixture[str], forge: str
) -> None:
    api = request.getfixturevalue(forge)
    write_comparison(folder / "old.json", measured(Commit(id="d" * 40, dirty=False)))
    assert main(["comment", "old.json"]) == 4
    told = "the comparison measured ddddddd, but this job is for bbbbbbb: it was not used"
    assert told in capsys.readouterr().err
    assert api.bodies == []
    assert not (folder / "summary.md").exists()


def test_base_of_a_pull_request_target_is_refused(
    github: GitHubApi, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_REF", "refs/heads/main")
    monkeypatch.setenv("GITHUB_SHA", "c" * 40)
    write_comparison(folder / "base.json", measured(Commit(id="c" * 40, dirty=False)))
    assert main(["comment", "base.json"]) == 4
    assert "the comparison measured ccccccc, but this job is for bbbbbbb" in capsys.readouterr().err
    assert github.bodies == []


def test_times_are_commented_too(github: GitHubApi, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = slower().exact.head.commit
    assert head is not None
    monkeypatch.setenv("GITHUB_SHA", head.id)
    write_time_comparison(folder / "ab.json", slower())
    assert main(["comment", "ab.json", "--configuration", "times"]) == 0
    assert "control (base against base)" in github.bodies[0]
    assert "configuration times" in github.bodies[0]


def test_summary_is_appended_to(github: GitHubApi, folder: Path) -> None:
    (folder / "summary.md").write_text("what another step said\n", encoding="utf-8")
    main(["comment", "same.json"])
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith("what another step said\n### opprof: PASS")


def test_good_news_can_be_kept_quiet(github: GitHubApi, folder: Path) -> None:
    for _ in range(2):
        assert main(["comment", "same.json", "--when=regressed"]) == 0
    assert github.bodies == []
    main(["comment", "risen.json", "--when=regressed"])
    main(["comment", "same.json", "--when=regressed"])
    (body,) = github.bodies
    assert "opprof: PASS" in body, "a comment that is there is kept up to date"
    write_comparison(folder / "bare.json", compared(None, simple_run(simple_test({"aten::mul": 4}))))
    github.comments.clear()
    main(["comment", "bare.json", "--when=regressed"])
    assert "compared with nothing" in github.bodies[0], "a gate that held nothing is no good news"


def test_command_line_names_the_author(github: GitHubApi) -> None:
    github.writer = ("my-app[bot]", 5)
    for name in ("risen", "same"):
        assert main(["comment", f"{name}.json", "--author=my-app[bot]"]) == 0
    assert len(github.bodies) == 1
    assert not any(asked.path == "/user" for asked in github.server.asked)
    assert not any(asked.method == "DELETE" for asked in github.server.asked)


def test_read_only_token_fails_with_its_own_code(
    github: GitHubApi, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    github.server.fail("POST", forbidden())
    assert main(["comment", "risen.json"]) == 11
    told = capsys.readouterr().err
    assert told.startswith(
        "opprof: GitHub: POST /repos/owner/project/issues/17/comments: refused (403: Resource"
    )
    assert "permissions: pull-requests: write" in told
    assert "REGRESSED" in (folder / "summary.md").read_text(encoding="utf-8")


def test_event_without_a_pull_request_succeeds(
    github: GitHubApi, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "event.json").write_text('{"ref": "refs/heads/main"}', encoding="utf-8")
    assert main(["comment", "risen.json"]) == 0
    assert capsys.readouterr().out == "no comment was written: this job belongs to no pull request\n"
    assert "REGRESSED" in (folder / "summary.md").read_text(encoding="utf-8")
    assert github.server.asked == []


def test_merge_request_of_gitlab_gets_its_note(gitlab: GitLabApi) -> None:
    assert main(["comment", "risen.json"]) == 0
    assert main(["comment", "same.json", "--author=project_12_bot"]) == 0
    (body,) = gitlab.bodies
    key = sticky_key(str(PROJECT), NUMBER, "default")
    assert Marker.of(body) == Marker(key=key, head=HEAD, run=90, attempt=900)
    assert "opprof: PASS" in body
    assert "https://gitlab.example.org/job" in body


def test_branch_pipeline_succeeds(
    gitlab: GitLabApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CI_MERGE_REQUEST_IID")
    assert main(["comment", "risen.json", "--forge=gitlab"]) == 0
    assert capsys.readouterr().out == "no comment was written: this job belongs to no merge request\n"


def test_forge_can_be_named(gitlab: GitLabApi, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["comment", "risen.json", "--forge=github"]) == 2
    assert "GITHUB_EVENT_PATH is not set: this is not a job of GitHub Actions" in capsys.readouterr().err


def test_dry_run_needs_no_job(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["comment", "risen.json", "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("### opprof: REGRESSED: 1 test\n")


WRONG = {
    "nothing": [],
    "two of them": ["risen.json", "--base=a", "--head=b"],
    "event and comparison": ["risen.json", "--from-event"],
    "event and runs": ["--from-event", "--base=a", "--head=b"],
    "event and GitLab": ["--from-event", "--forge=gitlab"],
    "baseline without event": ["risen.json", "--baseline=main"],
    "output without event": ["risen.json", "-o", "x.json"],
    "gate without runs": ["risen.json", "--gate=ops.count=off"],
}


@pytest.mark.parametrize("name", WRONG)
def test_options_without_effect_are_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["comment", *WRONG[name]]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_event_of_another_workflow_asks_for_its_option(
    github: GitHubApi, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "event.json").write_text(json.dumps(workflow_run_event()), encoding="utf-8")
    assert main(["comment", "risen.json"]) == 2
    assert "add --from-event" in capsys.readouterr().err


def test_missing_token_is_reported(
    github: GitHubApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    assert main(["comment", "risen.json"]) == 2
    assert "set GITHUB_TOKEN in the step's env to ${{ github.token }}" in capsys.readouterr().err


def test_unwritable_summary_is_reported(
    github: GitHubApi, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder))
    assert main(["comment", "risen.json"]) == 5
    assert "cannot be written: it is a folder" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["api.github.com", "ftp://x", "https://", "https://[::1", "https://x\n"])
def test_wrong_api_address_is_reported(
    github: GitHubApi, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_API_URL", address)
    assert main(["comment", "risen.json"]) == 2
    assert "is not an address of GitHub's API" in capsys.readouterr().err


def test_missing_library_is_named(
    github: GitHubApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    assert main(["comment", "risen.json"]) == 2
    assert (
        capsys.readouterr().err == "opprof: opprof comment needs httpx: pip install 'pytest-opprof[github]'\n"
    )
