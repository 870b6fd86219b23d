"""Pytest's configuration file, extended in place: its comments and layout stay unchanged."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_opprof.errors import UsageError
from pytest_opprof.results.files import write_bytes

if TYPE_CHECKING:
    Value = str | list[str]  # a string, or one entry per line

# Each file's section, in pytest's order of search.
_FILES = {
    "pytest.toml": "pytest",
    ".pytest.toml": "pytest",
    "pytest.ini": "pytest",
    ".pytest.ini": "pytest",
    "pyproject.toml": "tool.pytest",
    "tox.ini": "pytest",
    "setup.cfg": "tool:pytest",
}
# Other tools use these files too, so they count only if they have the section.
_SHARED = frozenset({"pyproject.toml", "tox.ini", "setup.cfg"})
_INI_OPTIONS = "ini_options"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of a configuration file, and what it sets already."""

    path: Path
    title: str
    text: str
    values: Mapping[str, Any]
    exists: bool

    def missing(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """The values that are not set yet."""
        return {key: value for key, value in values.items() if key not in self.values}

    def extend(self, values: Mapping[str, Value]) -> None:
        """Set the missing values under the section's title; UsageError if that is not safe."""
        lines = "".join(f"{key} = {self._written(value)}\n" for key, value in self.missing(values).items())
        text, header = self.text, rf"^\[{re.escape(self.title)}\][ \t]*(?:[#;].*)?(?:\r?\n|\Z)"
        if not self.exists:
            gap = "\n" if text.strip() else ""
            end = "" if text.endswith("\n") or not text else "\n"
            text += f"{end}{gap}[{self.title}]\n{lines}"
        elif found := re.search(header, text, re.MULTILINE):
            end = "" if found[0].endswith("\n") else "\n"
            text = f"{text[: found.end()]}{end}{lines}{text[found.end() :]}"
        try:
            extended: Mapping[str, Any] = _read(self.path, text).values
        except UsageError:
            extended = {}
        if not values.keys() <= extended.keys():
            lines = "; ".join(f"{key} = {value}" for key, value in self.missing(values).items())
            raise UsageError(f"{self.path}: [{self.title}] cannot be extended safely: add by hand {lines}")
        write_bytes(self.path, text.encode("utf-8"))

    def _written(self, value: Value) -> str:
        if self.path.suffix == ".toml":
            return json.dumps(value, ensure_ascii=False)
        return value if isinstance(value, str) else "".join(f"\n    {line}" for line in value)


def pytest_section(folder: Path) -> Section:
    """The section that pytest reads in a folder, or a new one in pyproject.toml, else in a new pytest.ini."""
    return (
        _found_in(folder)
        or _read_file(folder / "pyproject.toml")
        or Section(path=folder / "pytest.ini", title="pytest", text="", values={}, exists=False)
    )


def enclosing_section(folder: Path) -> Section | None:
    """The section that pytest reads when started in a folder: from there, or the nearest folder above."""
    folder = folder.resolve()
    found = (_found_in(each) for each in (folder, *folder.parents))
    return next((section for section in found if section is not None), None)


def root_file(folder: Path) -> Path | None:
    """The file whose folder is pytest's root if there is no section: a pyproject.toml, else a setup.py."""
    folder = folder.resolve()
    found = (each / name for name in ("pyproject.toml", "setup.py") for each in (folder, *folder.parents))
    return next(filter(Path.is_file, found), None)


def _found_in(folder: Path) -> Section | None:
    for name in _FILES:
        section = _read_file(folder / name)
        if section is not None and (section.exists or name not in _SHARED):
            return section
    return None


def _read_file(path: Path) -> Section | None:
    try:
        # Universal newlines would rewrite every line of a file from Windows.
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({error}). Set pytest's options by hand") from error
    return _read(path, text)


def _read(path: Path, text: str) -> Section:
    read = _read_toml if path.suffix == ".toml" else _read_ini
    return read(path, text, title=_FILES[path.name])


def _read_ini(path: Path, text: str, *, title: str) -> Section:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text, source=str(path))
    except configparser.Error as error:
        raise UsageError(f"{path} is not an ini file: {' '.join(str(error).split())}") from error
    exists = parser.has_section(title)
    values = dict(parser.items(title)) if exists else {}
    return Section(path=path, title=title, text=text, values=values, exists=exists)


def _read_toml(path: Path, text: str, *, title: str) -> Section:
    try:
        table: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    exists = True
    for name in title.split("."):
        exists = exists and isinstance(table, dict) and name in table
        table = table.get(name, {}) if isinstance(table, dict) else {}
    # [tool.pytest] is pytest 9's own; ini_options is what every pytest reads.
    if path.name == "pyproject.toml" and (not exists or _INI_OPTIONS in table):
        exists = exists and isinstance(table.get(_INI_OPTIONS), dict)
        table = table.get(_INI_OPTIONS, {})
        title = f"{title}.{_INI_OPTIONS}"
    values = table if isinstance(table, dict) else {}
    return Section(path=path, title=title, text=text, values=values, exists=exists)
