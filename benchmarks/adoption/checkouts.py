"""Makes a repository with a commit for each release, and the environment that all projects share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.adoption.projects import REQUIREMENTS, Project


class UnavailableError(Exception):
    """A project or the environment cannot be installed; the message says why."""


def environment(base: Path) -> Path:
    """The interpreter of the environment, which the first call makes in `base`.

    It sees this interpreter's packages (torch, for one) and adds those that the suites import.
    """
    folder = base / "environment"
    python = folder / "bin/python"
    if not (folder / "made").exists():
        _do([sys.executable, "-m", "venv", str(folder)])
        site = _do([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip()
        line = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
        Path(site, "neighbours.pth").write_text(line, encoding="utf-8")
        _do([str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS])
        (folder / "made").touch()
    return python


def checkout(project: Project, base: Path, *, newer: bool) -> Path:
    """Check out the newer or the older release in the project's repository, making it if needed.

    Raises:
        UnavailableError: A release cannot be downloaded.
    """
    repository = base / project.name / "checkout"
    if not (repository / ".git").exists():
        made = base / project.name / "partial"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        _git(made, "init", "--quiet", "--initial-branch=main")
        for version in (project.older, project.newer):
            for path in made.iterdir():
                if path.name != ".git":
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            _release(project, version, made)
            _git(made, "add", "--all", "--force")
            _git(made, "commit", "--quiet", "--message", version)
            _git(made, "tag", f"release-{version}")
        made.rename(repository)
    _git(repository, "clean", "-d", "--force", "--quiet", "-x", "--exclude=.opprof")
    _git(repository, "checkout", "--quiet", "--force", f"release-{project.newer if newer else project.older}")
    return repository


def _release(project: Project, version: str, folder: Path) -> None:
    """Unpack a release's sdist, and add files of its repository if the sdist has no tests."""
    with tempfile.TemporaryDirectory() as unpacked:
        named = f"{project.name}=={version}"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        _do([*pip, "--no-binary", project.name, "--dest", unpacked, named])
        [archive] = Path(unpacked).glob("*.tar.gz")
        with tarfile.open(archive) as files:
            files.extractall(unpacked, filter="data")
        [tree] = (path for path in Path(unpacked).iterdir() if path.is_dir())
        shutil.copytree(tree, folder, dirs_exist_ok=True)
        if project.tag:
            clone = Path(unpacked, "clone")
            tag = project.tag.format(version)
            what = ["--quiet", "--no-checkout", "--depth=1", "--branch", tag]
            _do(["git", "clone", *what, _address(tree), str(clone)])
            git = ["git", f"--git-dir={clone}/.git", f"--work-tree={folder}"]
            present = _do([*git, "ls-tree", "--name-only", tag, *project.taken]).splitlines()
            _do([*git, "checkout", tag, "--", *present])


def _address(tree: Path) -> str:
    """The URL of a project's repository, from the metadata of its sdist."""
    lines = (tree / "PKG-INFO").read_text(encoding="utf-8").splitlines()
    for line in lines:
        label, _, address = line.removeprefix("Project-URL: ").partition(", ")
        if line.startswith("Project-URL: ") and label.lower() in {"source", "source code", "repository"}:
            return address.removesuffix(".git")
    raise UnavailableError(f"the metadata of {tree.name} name no repository")


def _git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=adoption", "-c", "user.email=adoption@localhost", "-c", "gc.auto=0"]
    _do(["git", "-C", str(folder), *who, *words])


def _do(words: Sequence[str]) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False, env=kept)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise UnavailableError(f"`{' '.join(words[:4])}` failed: {' '.join(said)}")
    return done.stdout
