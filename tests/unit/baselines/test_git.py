"""Properties of a repository, asked of real git."""

from pathlib import Path

import pytest
from support.documents.stores import git

from pytest_opprof.baselines.git import Git


@pytest.mark.parametrize(
    ("remotes", "taken"),
    [((), ""), (("upstream",), "upstream"), (("fork", "origin"), "origin"), (("a", "b"), "a")],
    ids=["none", "the only one", "origin", "the first"],
)
def test_fetch_remote_is_chosen(tmp_path: Path, remotes: tuple[str, ...], taken: str) -> None:
    git(tmp_path, "init", "--quiet")
    for remote in remotes:
        git(tmp_path, "remote", "add", remote, f"https://example.org/{remote}.git")
    assert Git(tmp_path).remote == taken
