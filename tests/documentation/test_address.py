"""Links and addresses in a release that a package index can show."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

URL, COMMIT = "https://forge.example/team/pytest-opprof", "0123abc"


@pytest.fixture
def addressed(repository: Path, tmp_path: Path) -> Path:
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(repository / name, tmp_path)
    subprocess.run(
        [sys.executable, "-m", "opprof_docs.address", URL, COMMIT],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(repository / "docs")},
        check=True,
    )
    return tmp_path


def test_each_link_of_the_readme_leads_to_a_file_of_the_commit(addressed: Path, repository: Path) -> None:
    text = (addressed / "README.md").read_text(encoding="utf-8")
    links = [("blob", link) for link in re.findall(r"\]\(([^)]+)\)", text)]
    links += [("raw", link) for link in re.findall(r'src(?:set)?="([^"]+)"', text)]
    assert len(links) > 20
    for kind, link in links:
        root, _, path = link.partition(f"/{kind}/{COMMIT}/")
        assert root == URL, link
        assert (repository / path.partition("#")[0]).exists(), link


def test_the_readme_of_an_index_installs_from_it(addressed: Path) -> None:
    text = (addressed / "README.md").read_text(encoding="utf-8")
    assert "\n$ pip install pytest-opprof\n" in text
    assert "pip install ." not in text


def test_the_project_names_its_repository(addressed: Path, repository: Path) -> None:
    project = tomllib.loads((addressed / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"].pop("urls") == {
        "Source": URL,
        "Documentation": f"{URL}/tree/{COMMIT}/docs",
        "Changelog": f"{URL}/blob/{COMMIT}/CHANGELOG.md",
        "Issues": f"{URL}/issues",
    }
    assert project == tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
