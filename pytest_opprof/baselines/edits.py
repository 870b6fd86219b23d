"""The lines of a work tree that a branch changed since a commit."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
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


class Edits(Mapping[str, EditedFile]):
    """Edited files by path, absolute or from a folder. A lookup follows links."""

    def __init__(self, folder: Path, files: Mapping[str, EditedFile]) -> None:
        self._folder = os.path.realpath(folder)
        self._files = files  # by real path

    def __getitem__(self, file: str) -> EditedFile:
        """What was edited in a file."""
        return self._files[os.path.realpath(os.path.join(self._folder, file))]  # noqa: PTH118

    def __iter__(self) -> Iterator[str]:
        """The paths, relative if they are below the folder."""
        return (file.removeprefix(self._folder + os.sep) for file in self._files)

    def __len__(self) -> int:
        """The number of files."""
        return len(self._files)


def edits_since(folder: Path, commit: str) -> Edits:
    """The edits of a folder's whole work tree since a commit; empty if git fails.

    A line in which only variables were renamed, or only the comment changed, is not edited. Files that git
    does not track yet are new.
    """
    names = ("-c", "core.quotePath=false", "-c", "diff.autoRefreshIndex=false")
    options = ("-U0", "--no-color", "--no-ext-diff", "--no-prefix", "--no-relative")
    try:
        told = run_git(folder, "rev-parse", "--show-toplevel")
        top = Path(os.fsdecode(told.stdout.removesuffix(b"\n"))).resolve()
        done = run_git(top, *names, "diff", *options, "--end-of-options", commit, "--", "*.py")
    except (OSError, subprocess.TimeoutExpired):
        return Edits(folder, {})
    if told.returncode != 0 or done.returncode != 0:
        return Edits(folder, {})
    diff = _Diff()
    diff.read(done.stdout)
    found = diff.edits(top) | _untracked(top)
    return Edits(folder, {str(edited.path): edited for edited in found.values()})


def _untracked(folder: Path) -> dict[str, EditedFile]:
    """Files that nobody has added to git yet, each all new."""
    try:
        done = run_git(folder, "ls-files", "-z", "--others", "--exclude-standard", "--", "*.py")
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found = {}
    for name in filter(None, done.stdout.split(b"\0")[:_MOST_FILES]):
        path = folder / os.fsdecode(name)
        with contextlib.suppress(OSError):  # a link to nothing, or removed meanwhile
            count = path.read_bytes().count(b"\n") + 1
            found[os.fsdecode(name)] = EditedFile(path=path, lines=frozenset(range(1, count + 1)))
    return found


class _Diff:
    """Parses a diff without context, line by line.

    Attributes:
        lines: By file: the numbers of the new lines.
        cuts: By file: the places where nothing is new.
        undecorated: By file: the lines above which a decorator was removed.
        reworded: By file: each new line like a removed one, by its number, with both texts.
    """

    def __init__(self) -> None:
        self.lines = defaultdict[str, set[int]](set)
        self.cuts = defaultdict[str, set[Cut]](set)
        self.undecorated = defaultdict[str, set[int]](set)
        self.reworded = defaultdict[str, list[tuple[int, bytes, bytes]]](list)
        # Of a hunk: the removed lines by shape, the removed decorators, the next new line's number.
        self._gone = defaultdict[bytes, list[bytes]](list)
        self._bare = set[bytes]()
        self._at, self._is_cut = 0, False

    def read(self, diff: bytes) -> None:
        """Read a whole diff; what lies beyond `_MOST_LINES` new lines is left out."""
        file, total = "", 0
        for line in diff.splitlines():
            if line.startswith(_NEW_FILE):
                file = line.removeprefix(_NEW_FILE).rstrip(b"\t").decode("utf-8", "surrogateescape")
            elif hunk := _HUNK.match(line):
                self._at, many = int(hunk[1]), int(hunk[2] or 1)
                total += many
                if total > _MOST_LINES:
                    break
                self.lines[file].update(range(self._at, self._at + many))
                self._gone.clear()
                self._bare.clear()
                self._is_cut = many == 0
            elif line.startswith(b"-"):
                self._read_removed(line, file)
            elif line.startswith(b"+"):
                self._read_new(line, file)

    def _read_removed(self, line: bytes, file: str) -> None:
        code = _code(line)
        text = code.lstrip()
        if self._is_cut and text:
            self.cuts[file].add(Cut(self._at, len(code) - len(text)))
            self.undecorated[file].update([self._at + 1] if text.startswith(b"@") else ())
            self._is_cut = False
        self._bare.update([text] if text.startswith(b"@") else ())
        self._gone[_shape(code)].append(code)

    def _read_new(self, line: bytes, file: str) -> None:
        code = _code(line)
        text = code.lstrip()
        self._bare.discard(text)
        if not code:
            self.lines[file].discard(self._at)
        elif same := self._gone[_shape(code)]:
            self.reworded[file].append((self._at, same.pop(0), code))
        if self._bare and text.startswith((b"def ", b"async def ")):
            self.undecorated[file].add(self._at)
        self._at += 1

    def edits(self, folder: Path) -> dict[str, EditedFile]:
        """The edits by file."""
        return {
            file: EditedFile(
                path=folder / file,
                lines=frozenset(numbers - _only_renamed(self.reworded[file])),
                cuts=frozenset(self.cuts[file]),
                undecorated=frozenset(self.undecorated[file]),
            )
            for file, numbers in self.lines.items()
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
