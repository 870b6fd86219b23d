"""Which lines a branch has changed."""

import os
import subprocess
from pathlib import Path

import pytest

from pytest_opprof.baselines.edited_file import EditedFile
from pytest_opprof.baselines.edits import edits_since


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "sub").mkdir()
    (tmp_path / "model.py").write_text("a\nb\nc\nd\n")
    (tmp_path / "sub" / "été.py").write_text("a\nb\n")
    (tmp_path / "notes.txt").write_text("a\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "first")
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def lines_since(folder: Path, commit: str) -> dict[str, frozenset[int]]:
    return {file: edited.lines for file, edited in edits_since(folder, commit).items()}


def test_new_and_edited_lines_are_found(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    (repository / "model.py").write_text("a\nB\nc\nnew\nnew\nd\n")
    (repository / "sub" / "été.py").write_text("b\n")
    (repository / "notes.txt").write_text("b\n")
    assert lines_since(repository, first) == {
        "model.py": {2, 4, 5},
        "sub/été.py": set(),
        "notes.txt": {1},
    }
    (repository / "sub" / "été.py").write_text("a\nb\nc\n")
    assert lines_since(repository / "sub", first) == {
        str(repository / "model.py"): {2, 4, 5},
        str(repository / "notes.txt"): {1},
        "été.py": {3},
    }


def test_lines_of_untracked_files_are_new(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    (repository / ".gitignore").write_text("ignored.py\n")
    for name in ("new.py", "sub/new too.py", "ignored.py"):
        (repository / name).write_text("a\nb\n")
    (repository / "dangling.py").symlink_to("nowhere.py")
    assert lines_since(repository, first) == {"new.py": {1, 2}, "sub/new too.py": {1, 2}}


RENAMED = """\
def step(rows):
    weight = rows.sum()
    for row in rows:
        use(row * weight, "row", weight if row else 2)
        show(rows)
"""


@pytest.mark.parametrize(
    ("old", "new", "edited"),
    [
        ("weight", "scale", set()),
        ("row ", "line ", set()),
        ("rows", "lines", set()),
        ("show(rows)", "show(weight)", {5}),
        ("in rows", "in weight", {3}),
        ("use(", "keep(", {4}),
        ("rows.sum", "rows.max", {2}),
        ('"row"', '"line"', {4}),
        ("2)", "3)", {4}),
        ("        show(rows)", "        show(rows)\n        show(rows)", {6}),
        ("        show(rows)", "    show(rows)", {5}),
        ("        show(rows)", "        show(rows)  # all of them", set()),
        ("        show(rows)", "        # all of them\n\n        show(rows)", set()),
        ("        show(rows)", '        show(rows, "#")  # all', {5}),
    ],
)
def test_renamed_variables_are_not_an_edit(repository: Path, old: str, new: str, edited: set[int]) -> None:
    """A line that uses another variable, calls another function or has moved is an edit."""
    model = repository / "model.py"
    model.write_text(RENAMED)
    git(repository, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qam", "second")
    model.write_text(RENAMED.replace(old, new))
    assert lines_since(repository, "HEAD") == {"model.py": edited}


def test_code_of_another_file_is_known(repository: Path) -> None:
    """Also if it moves to a file that git does not track yet, or a link takes the place of its own."""
    model = repository / "model.py"
    model.write_text("def f(x):\n    return x\n")
    (repository / "old.py").write_text("@cache\ndef g(x):\n    y = x + 1\n    return y\n")
    git(repository, "add", ".")
    git(repository, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "second")
    (repository / "moved.py").write_text("def g(x):\n    y = x + 1\n    return y\n")
    (repository / "old.py").unlink()
    (repository / "old.py").symlink_to("moved.py")
    (edited,) = edits_since(repository, "HEAD").items()
    assert edited == (
        "moved.py",
        EditedFile(repository / "moved.py", decorated=frozenset({"g"}), new=frozenset({""})),
    )


def test_files_of_other_languages_count_as_edited(repository: Path) -> None:
    """But not those for people, nor one of which only the time changed."""
    for name in ("net.yaml", "README.md", "same.cu"):
        (repository / name).write_text("depth: 6\n")
    git(repository, "add", ".")
    git(repository, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "second")
    for name in ("net.yaml", "README.md"):
        (repository / name).write_text("depth: 12\n")
    os.utime(repository / "same.cu", (1, 1))
    (repository / "notes.txt").unlink()
    assert lines_since(repository, "HEAD") == {"net.yaml": {1}, "notes.txt": {1}}
    assert edits_since(repository, "HEAD")["net.yaml"].places == (("", 1),)


def test_gits_index_stays_as_it_is(repository: Path) -> None:
    """A plain `git diff` rewrites it for a file with another time and the same text."""
    index, model = repository / ".git" / "index", repository / "model.py"
    os.utime(model, (1, 1))
    before = index.read_bytes()
    assert edits_since(repository, "HEAD") == {}
    assert index.read_bytes() == before


def test_unknown_commit_has_no_edits(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert edits_since(repository, "0" * 40) == {}
    assert edits_since(tmp_path_factory.mktemp("outside"), "HEAD") == {}


def test_commit_is_never_taken_as_an_option(repository: Path) -> None:
    assert edits_since(repository, "--output=stolen") == {}
    assert not (repository / "stolen").exists()
