"""The lines of a work tree that a branch changed since a commit."""

from __future__ import annotations

import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from keyword import iskeyword
from pathlib import Path

from pytest_opprof.baselines.edited_file import Cut, EditedFile
from pytest_opprof.baselines.git import run_git

# In `git diff -U0`: a hunk's place in the work tree, and its number of lines there.
_HUNK = re.compile(rb"@@ -[0-9,]+ \+([0-9]+)(?:,([0-9]+))? @@")
_NEW_FILE = b"+++ "
_MOST_LINES = 200_000
_MOST_FILES = 1_000  # not added: an environment that git does not ignore has many more
# A string, or a name that is neither an attribute nor called.
_NAME = re.compile(rb"""("[^"]*"|'[^']*')|(?<![\w.])([A-Za-z_]\w*)\b(?!\s*\()""")
# A string, or a comment with the spaces before it.
_COMMENT = re.compile(rb"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\s*#.*""")
# The part of a line that binds variables.
_GIVES_NAMES = re.compile(rb"\s*((async )?(def\b.*|for\b.*?\bin\b)|[^=(]*[^=(!<>](?==[^=]))")


def edits_since(folder: Path, commit: str) -> Mapping[str, EditedFile]:
    """The edits below a folder of the work tree since a commit, by path in the folder; empty if git fails.

    A line in which only variables were renamed, or only the comment changed, is not edited. Files that git
    does not track yet are new.
    """
    names = ("-c", "core.quotePath=false", "-c", "diff.autoRefreshIndex=false")
    options = ("-U0", "--no-color", "--no-ext-diff", "--no-prefix", "--relative")
    try:
        done = run_git(folder, *names, "diff", *options, "--end-of-options", commit, "--", "*.py")
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return _read(done.stdout, folder) | _untracked(folder) if done.returncode == 0 else {}


def _untracked(folder: Path) -> dict[str, EditedFile]:
    """Files that nobody has added to git yet, each all new."""
    try:
        done = run_git(folder, "ls-files", "-z", "--others", "--exclude-standard", "--", "*.py")
        names = [os.fsdecode(name) for name in done.stdout.split(b"\0")[:_MOST_FILES] if name]
        counts = {name: (folder / name).read_bytes().count(b"\n") + 1 for name in names}
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return {
        name: EditedFile(path=folder / name, lines=frozenset(range(1, count + 1)))
        for name, count in counts.items()
    }


def _read(diff: bytes, folder: Path) -> dict[str, EditedFile]:
    """Parse a diff without context: the edits by file."""
    lines = defaultdict[str, set[int]](set)
    cuts = defaultdict[str, set[Cut]](set)
    undecorated = defaultdict[str, set[int]](set)
    reworded = defaultdict[str, list[tuple[int, bytes, bytes]]](list)
    file, total = "", 0
    # Within a hunk: the removed lines by their shape, and the number of the next new line.
    gone, at, is_cut = defaultdict[bytes, list[bytes]](list), 0, False
    for line in diff.splitlines():
        if line.startswith(_NEW_FILE):
            file = line.removeprefix(_NEW_FILE).rstrip(b"\t").decode("utf-8", "surrogateescape")
        elif hunk := _HUNK.match(line):
            at, many = int(hunk[1]), int(hunk[2] or 1)
            total += many
            if total > _MOST_LINES:
                break
            lines[file].update(range(at, at + many))
            gone.clear()
            is_cut = many == 0
        elif line.startswith(b"-"):
            text = line[1:].lstrip()
            if is_cut and text:
                cuts[file].add(Cut(at, len(line) - 1 - len(text)))
                undecorated[file].update([at + 1] if text.startswith(b"@") else ())
                is_cut = False
            code = _code(line)
            gone[_shape(code)].append(code)
        elif line.startswith(b"+"):
            code = _code(line)
            if not code:
                lines[file].discard(at)
            elif same := gone[_shape(code)]:
                reworded[file].append((at, same.pop(0), code))
            at += 1
    return {
        file: EditedFile(
            path=folder / file,
            lines=frozenset(numbers - _only_renamed(reworded[file])),
            cuts=frozenset(cuts[file]),
            undecorated=frozenset(undecorated[file]),
        )
        for file, numbers in lines.items()
    }


def _only_renamed(reworded: Iterable[tuple[int, bytes, bytes]]) -> set[int]:
    """The lines in which only variables were renamed, if one of these lines also binds the new names.

    Without that, a line takes another variable and so does something else.
    """
    given = {
        pair
        for _, *texts in reworded
        for pair in zip(*(_names(part[0]) for part in map(_GIVES_NAMES.match, texts) if part), strict=False)
    }
    return {
        number
        for number, *texts in reworded
        if all(old == new or (old, new) in given for old, new in zip(*map(_names, texts), strict=True))
    }


def _code(line: bytes) -> bytes:
    """A line of a diff without its sign and its comment; empty if nothing else is on it."""
    return _COMMENT.sub(lambda found: found[1] or b"", line[1:]).rstrip()


def _names(line: bytes) -> list[bytes]:
    return [found[2] for found in _NAME.finditer(line) if found[2] and not iskeyword(found[2].decode())]


def _shape(line: bytes) -> bytes:
    """A line with its variables replaced by numbers, in the order of their first use."""
    numbers = {name: b"$%d" % at for at, name in enumerate(dict.fromkeys(_names(line)))}
    return _NAME.sub(lambda found: numbers.get(found[2], found[0]), line)
