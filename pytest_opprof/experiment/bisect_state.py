"""A bisection's measurements in a file, so that an interrupted one can be resumed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_opprof.baselines.folder import project_writing, state_file
from pytest_opprof.errors import DocumentError, UsageError
from pytest_opprof.experiment.search import Measured
from pytest_opprof.results.files import parse, read_bytes, shown, write_bytes

_NAME = "bisect.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is searched for; a state belongs to one question."""

    pattern: str
    test: str
    good: str
    bad: str
    setup: str
    python: str


class BisectState:
    """The measurements of one bisection, in a project's ``.opprof``."""

    def __init__(self, folder: Path, question: Question) -> None:
        self._folder = folder
        self._path = state_file(folder, _NAME)
        self._question = question
        self.measured: dict[str, Measured] = {}

    def resume(self) -> None:
        """Load the measurements of an interrupted bisection; raises `UsageError` if there is none.

        Failed measurements are tried again: the machine or the timeout may have caused them.
        """
        if not self._path.exists():
            raise UsageError(f"there is nothing to resume: no {shown(self._path)}. Leave out --resume")
        document = parse(read_bytes(self._path), where=shown(self._path))
        try:
            asked = Question(**document["question"])
            known = {str(commit): _measured(found) for commit, found in document["measured"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            msg = f"{shown(self._path)} is not the state of a bisection. Leave out --resume to start again"
            raise DocumentError(msg) from error
        if asked != self._question:
            was, now = asdict(asked), asdict(self._question)
            field = next(name for name in now if was[name] != now[name])
            raise UsageError(
                f"{shown(self._path)} is of another bisection: its {field} is {was[field]!r}, not "
                f"{now[field]!r}. Leave out --resume to start again"
            )
        self.measured = {commit: found for commit, found in known.items() if found.value is not None}

    def keep(self, commit: str, found: Measured) -> None:
        """Add a measurement, and write the file."""
        self.measured[commit] = found
        measured = {each: asdict(known) for each, known in self.measured.items()}
        document = {"question": asdict(self._question), "measured": measured}
        with project_writing(self._folder):
            write_bytes(self._path, json.dumps(document, indent=1).encode("ascii") + b"\n")

    def forget(self) -> None:
        """Remove the file once the question is answered."""
        self._path.unlink(missing_ok=True)


def _measured(found: Any) -> Measured:
    value = found["value"]
    if not (value is None or isinstance(value, int)):
        raise TypeError(f"{value!r} is not a value of an exact metric")
    return Measured(value=value, reason=str(found["reason"]))
