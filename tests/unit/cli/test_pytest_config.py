"""pytest's configuration, extended in place."""

import tomllib
from pathlib import Path

import pytest

from pytest_opprof.cli.pytest_config import pytest_section
from pytest_opprof.errors import UsageError

VALUES = {"opprof_store": "dir:.opprof", "opprof_fail_on": "regressed"}


def extended(folder: Path) -> str:
    section = pytest_section(folder)
    section.extend(VALUES)
    assert pytest_section(folder).missing(VALUES) == {}
    return section.path.read_text()


def test_empty_folder_gets_a_pytest_ini(tmp_path: Path) -> None:
    assert extended(tmp_path) == "[pytest]\nopprof_store = dir:.opprof\nopprof_fail_on = regressed\n"


def test_pyproject_gets_a_section(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"')
    text = extended(tmp_path)
    assert text.startswith(
        '[project]\nname = "x"\n\n[tool.pytest.ini_options]\nopprof_store = "dir:.opprof"\n'
    )
    assert tomllib.loads(text)["tool"]["pytest"]["ini_options"] == VALUES


def test_comments_and_layout_stay(tmp_path: Path) -> None:
    before = '# mine\n[tool.pytest.ini_options]  # here\naddopts = "-ra"   # why\n\n[tool.x]\na = 1\n'
    (tmp_path / "pyproject.toml").write_text(before)
    text = extended(tmp_path)
    added = 'opprof_store = "dir:.opprof"\nopprof_fail_on = "regressed"\n'
    assert text == before.replace("# here\n", f"# here\n{added}")


def test_existing_settings_are_kept(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nopprof_store = dir:elsewhere\n")
    text = extended(tmp_path)
    assert text == "[pytest]\nopprof_fail_on = regressed\nopprof_store = dir:elsewhere\n"


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("pytest.toml", "pytest"),
        (".pytest.toml", "pytest"),
        ("pytest.ini", "pytest"),
        (".pytest.ini", "pytest"),
        ("tox.ini", "pytest"),
        ("setup.cfg", "tool:pytest"),
    ],
)
def test_the_file_that_pytest_reads_is_taken(tmp_path: Path, name: str, title: str) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (tmp_path / name).write_text(f"[{title}]\n")
    section = pytest_section(tmp_path)
    assert (section.path.name, section.title, section.exists) == (name, title, True)
    assert "opprof_store" in extended(tmp_path)


def test_empty_pytest_ini_wins(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (tmp_path / "pytest.ini").write_text("")
    assert extended(tmp_path).startswith("[pytest]\n")


def test_native_toml_of_pytest_9_is_extended(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest]\nstrict = true\n")
    assert "[tool.pytest]\nopprof_store" in extended(tmp_path)


def test_last_line_without_newline_is_ended(tmp_path: Path) -> None:
    (tmp_path / "setup.cfg").write_text("[tool:pytest]")
    assert extended(tmp_path).startswith("[tool:pytest]\nopprof_store")


def test_windows_lines_stay(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_bytes(b"[pytest]\r\naddopts = -ra\r\n")
    pytest_section(tmp_path).extend(VALUES)
    assert (tmp_path / "pytest.ini").read_bytes().endswith(b"addopts = -ra\r\n")


@pytest.mark.parametrize(
    "text",
    [
        'tool.pytest.ini_options = {addopts = "-ra"}\n',
        '[tool]\npytest.ini_options.addopts = "-ra"\n',
        'note = """\n[tool.pytest.ini_options]\n"""\n[tool."pytest".ini_options]\naddopts = "-ra"\n',
    ],
    ids=["inline", "dotted", "quoted"],
)
def test_unsafe_files_are_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(
        UsageError, match=r"cannot be extended safely: add by hand opprof_store = dir:\.opprof"
    ):
        pytest_section(tmp_path).extend(VALUES)
    assert (tmp_path / "pyproject.toml").read_text() == text


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("pyproject.toml", b"[", "is not TOML"),
        ("pytest.ini", b"addopts = -ra", "is not an ini file"),
        ("tox.ini", b"\xff", "cannot be read"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        pytest_section(tmp_path)
