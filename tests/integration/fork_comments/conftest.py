"""A job that comments on the upload of a fork's job."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from e2e.project import environment
from support.forges.fork_jobs import Job
from support.forges.github_api import GitHubApi


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Job]:
    api = GitHubApi()
    folder = tmp_path / "checkout"
    folder.mkdir()
    (tmp_path / "output").touch()
    surroundings: Mapping[str, str] = {
        **{name: value for name, value in environment().items() if name.startswith("GIT_")},
        "GIT_CEILING_DIRECTORIES": str(tmp_path),
        "GITHUB_API_URL": api.server.url,
        "GITHUB_TOKEN": "secret",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_RUN_NUMBER": "1000",
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_ENV": str(tmp_path / "output"),
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    found = Job(api=api, folder=folder, capsys=capsys)
    found.event()
    yield found
    api.close()
