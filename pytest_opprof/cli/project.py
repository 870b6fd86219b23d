"""The settings that commands read from pytest's configuration, such as the store and the gates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_opprof.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from pytest_opprof.baselines.archive import Archive
    from pytest_opprof.compare.renamed_tests import Renamed
    from pytest_opprof.compare.sessions import Policy
    from pytest_opprof.compare.verdicts import FailOn
    from pytest_opprof.history.log import HistoryLog

_STORE: Final = "dir:.opprof"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The project that a command runs in."""

    root: Path  # pytest's root folder; if no file tells it, the current folder
    where: str = ""  # the file that tells it, for errors
    values: dict[str, Any]

    @classmethod
    def here(cls) -> Project:
        """The project around the current folder."""
        from pytest_opprof.cli.pytest_config import enclosing_section, root_file

        section = enclosing_section(Path.cwd())
        path = section.path if section else root_file(Path.cwd())
        if path is None:
            return cls(root=Path.cwd(), values={})
        return cls(root=path.parent, where=str(path), values=dict(section.values if section else {}))

    @property
    def folder(self) -> Path:
        """Its ``.opprof``, which pytest uses too; if no file tells the root, the nearest one upwards."""
        from pytest_opprof.baselines.folder import FOLDER, project_folder

        return self.root / FOLDER if self.where else project_folder(self.root)

    @property
    def store(self) -> str:
        """The URI of its store, relative to `root`."""
        return self._text("opprof_store") or _STORE

    def policy(self, gates: list[str]) -> Policy:
        """The gates of the configuration and of the command line, and the accepted values."""
        from pytest_opprof.baselines.accepted import read_accepted
        from pytest_opprof.compare.gates import parse_gate_options
        from pytest_opprof.compare.sessions import Policy

        return Policy(
            ini=parse_gate_options(self._lines("opprof_gate"), where="opprof_gate"),
            command_line=parse_gate_options(gates, where="--gate"),
            accepted=read_accepted(self.folder),
        )

    def fail_on(self, given: str | None) -> FailOn:
        """The failing verdicts: the command line's, else the configuration's."""
        from pytest_opprof.compare.verdicts import DEFAULT_FAIL_ON, parse_fail_on

        if given:
            return parse_fail_on(given, where="--fail-on")
        return parse_fail_on(self._text("opprof_fail_on") or DEFAULT_FAIL_ON, where="opprof_fail_on")

    def renames(self, given: list[str]) -> tuple[Renamed, ...]:
        """The renamed tests of the command line and of the configuration."""
        from pytest_opprof.compare.renamed_tests import parse_renames

        return parse_renames([*given, *self._lines("opprof_rename")], where="--rename and opprof_rename")

    def _text(self, key: str) -> str:
        value = self.values.get(key) or ""
        if not isinstance(value, str):
            raise UsageError(f"{self.where}: {key} is {value!r}: write it as a string")
        return value

    def _lines(self, key: str) -> list[str]:
        """A list as pytest reads it: a TOML list, or one entry per line."""
        value = self.values.get(key) or ""
        lines = value.splitlines() if isinstance(value, str) else value
        if not (isinstance(lines, list) and all(isinstance(line, str) for line in lines)):
            raise UsageError(f"{self.where}: {key} is {value!r}: write it as a list of strings")
        return [line.strip() for line in lines if line.strip()]


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--store``."""
    parser.add_argument(
        "--store", metavar="URI", help=f"default: opprof_store of pytest's configuration, else {_STORE}"
    )


def add_gate(parser: argparse.ArgumentParser, *, needs: str = "") -> None:
    """Add the option ``--gate``; its help begins with ``needs``."""
    parser.add_argument(
        "--gate",
        action="append",
        default=[],
        metavar="PATTERN=RULE",
        help=f"{needs}exact, off, advisory, or like 2%%",
    )


def place_of(given: str | None) -> tuple[str, Path]:
    """A store's URI, and the folder it is relative to: the current one for an option, else pytest's root."""
    if given is not None:
        return given, Path.cwd()
    project = Project.here()
    return project.store, project.root


def history_log(given: str | None) -> HistoryLog:
    """The project's history beside the store."""
    from pytest_opprof.history.store import history_of

    uri, root = place_of(given)
    return history_of(uri, root=root, project=Project.here().root)


def store_of(given: str | None) -> Archive:
    """Open the store; UsageError if its URI is invalid."""
    from pytest_opprof.baselines.archive import open_store

    uri, root = place_of(given)
    return open_store(uri, root=root, project=Project.here().root)
