"""Which lines of a work tree a branch has changed since a commit."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from pytest_opprof.baselines.git import run_git

# Of `git diff -U0`: where a hunk stands in the work tree, and how many lines it has there.
_HUNK = re.compile(rb"@@ -[0-9,]+ \+([0-9]+)(?:,([0-9]+))? @@")
_NEW_FILE = b"+++ "
_MOST_LINES = 200_000


def edits_since(folder: Path, commit: str) -> Mapping[str, frozenset[int]]:
    """By file, the numbers of the lines that are new or edited. Nothing where git cannot tell.

    Args:
        folder: Paths are as seen from here, which is in the repository.
        commit: What the work tree is compared with.
    """
    names = ("-c", "core.quotePath=false", "-c", "diff.autoRefreshIndex=false")
    options = ("-U0", "--no-color", "--no-ext-diff", "--no-prefix", "--relative")
    try:
        done = run_git(folder, *names, "diff", *options, "--end-of-options", commit, "--", "*.py")
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found: defaultdict[str, set[int]] = defaultdict(set)
    lines = 0
    file = ""
    for line in done.stdout.splitlines() if done.returncode == 0 else ():
        if line.startswith(_NEW_FILE):
            file = line.removeprefix(_NEW_FILE).rstrip(b"\t").decode("utf-8", "surrogateescape")
        elif hunk := _HUNK.match(line):
            first, many = int(hunk[1]), int(hunk[2] or 1)
            lines += many
            if lines > _MOST_LINES:
                break
            found[file].update(range(first, first + many))
    return {file: frozenset(numbers) for file, numbers in found.items()}
