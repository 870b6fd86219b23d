"""Where a store's history lies, and how a run gets into it."""

import subprocess
from pathlib import Path

import pytest
from histories import run_on_day

from pytest_opprof.history.entries import RunEntry, read_entries
from pytest_opprof.history.store import history_of, remember
from pytest_opprof.results.run import Commit


@pytest.mark.parametrize(
    ("uri", "folder"),
    [
        ("dir:.opprof", ".opprof/history"),
        ("dir:/elsewhere", "/elsewhere/history"),
        ("kept/here", "kept/here/history"),
        ("git:", ".opprof/history"),
        ("s3://bucket/folder", ".opprof/history"),
    ],
)
def test_history_lies_beside_a_folder(tmp_path: Path, uri: str, folder: str) -> None:
    assert history_of(uri, root=tmp_path).folder == tmp_path / folder


def test_run_is_remembered_with_its_commits_time(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    when = {"GIT_COMMITTER_DATE": "2020-02-02T02:02:02Z", "PATH": "/usr/bin:/bin:/usr/local/bin"}
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "a"], check=True, env=when)
    head = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    log = history_of("dir:.opprof", root=tmp_path)
    assert remember(log, run_on_day(1, commit=Commit(id=head, dirty=False)), repository=tmp_path)
    assert not remember(log, run_on_day(2, tests=0), repository=tmp_path)
    (segment,) = log.segments()
    (entry,) = (entry for entry in read_entries(segment.path).entries if isinstance(entry, RunEntry))
    assert entry.head.committed is not None
    assert entry.head.committed.isoformat() == "2020-02-02T02:02:02+00:00"
