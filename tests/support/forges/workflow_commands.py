"""Workflow commands, parsed by the rules of GitHub's runner (`ActionCommand`)."""

import re
from dataclasses import dataclass

_DATA = {"%0D": "\r", "%0A": "\n", "%25": "%"}
_PROPERTY = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}


@dataclass(frozen=True)
class Command:
    """``::kind name=value,name=value::message``."""

    kind: str
    properties: dict[str, str]
    message: str


def commands(text: str) -> list[Command]:
    """One command per line; any other line is a failure."""
    return [_command(line) for line in text.split("\n") if line]


def obeyed(text: str) -> list[str]:
    """The lines that a runner may take for commands: GitHub's `TryParseV2` trims a line, `TryParse` searches it.

    Azure's agent searches a line for ``##vso[``.
    """
    found = re.compile(r"##(vso)?\[")
    return [
        line for line in re.split("\r\n|\r|\n", text) if line.lstrip().startswith("::") or found.search(line)
    ]


def _command(line: str) -> Command:
    assert line.startswith("::"), line
    head, found, message = line.removeprefix("::").partition("::")
    assert found, line
    kind, _, written = head.partition(" ")
    # like the runner: split at commas first, then unescape
    pairs = (pair.partition("=") for pair in written.split(",") if pair)
    properties = {name.strip(): _unescaped(value, _PROPERTY) for name, _, value in pairs}
    return Command(kind=kind, properties=properties, message=_unescaped(message, _DATA))


def _unescaped(text: str, known: dict[str, str]) -> str:
    for written, meant in known.items():
        text = text.replace(written, meant)
    return text
