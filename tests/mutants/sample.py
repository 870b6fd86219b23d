"""A sample of all single edits, tried one after the other: how many of them a test notices."""

from __future__ import annotations

import hashlib
import queue
import random
import re
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol

from mutants.covering import Covering
from mutants.single_edits import SingleEdit, single_edits
from mutants.tree import BuildError, Tree

_SOURCES: Final = (
    *(f"pytest_opprof/{room}/*.py" for room in ("compare", "plugin", "forge", "baselines", "results")),
    "native/src/cuda/cuda*.c",
)
# Tests that run the CUDA sources: the C tests over the fake libcupti, and the programs that load it.
_PROGRAMS: Final = "cuda|cupti|device|fake|trace|flows|lanes"
_NATIVE_TESTS: Final = tuple(
    f"tests/integration/test_{name}.py" for name in ("cuda", "cuda_traces", "cuda_scripts", "occupancy")
)
_LONGEST_S: Final = 90.0
_HANGS_S: Final = 300.0
_USAGE_ERROR: Final = 4
_OPTIONS: Final = ("-q", "-m", "not slow", "--timeout=60", "--tb=line")
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)


class Book(Protocol):
    """Which test noticed each edit that was tried; ``""`` if none did."""

    def __getitem__(self, name: str) -> str | None: ...
    def __setitem__(self, name: str, by: str) -> None: ...


def digest_of_sources(repository: Path) -> str:
    """Changes if an edit or the tests of a line may differ; a change of a test alone does not matter."""
    digest = hashlib.sha256()
    for pattern in ("pytest_opprof/**/*.py", "native/**/*.[ch]", "native/**/*.cpp"):
        for path in sorted(repository.glob(pattern)):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(repository)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def drawn(repository: Path, *, many: int, seed: int) -> list[SingleEdit]:
    """A random sample of all edits of the sampled sources."""
    files = sorted(path for pattern in _SOURCES for path in repository.glob(pattern))
    edits = [edit for path in files for edit in single_edits(repository, str(path.relative_to(repository)))]
    return random.Random(seed).sample(edits, many)  # noqa: S311  # nobody is to be kept from guessing it


def survivors(
    trees: Sequence[Tree], edits: Sequence[SingleEdit], covered: Covering, book: Book
) -> list[SingleEdit]:
    """The edits that no test noticed; as many are tried at a time as there are trees.

    Those that an earlier run noticed are not tried again; its survivors are, as tests may have come since.
    A test that fails without an edit too has noticed nothing.
    """
    free: queue.SimpleQueue[Tree] = queue.SimpleQueue()
    for tree in trees:
        free.put(tree)
    writing = threading.Lock()

    def noticer(edit: SingleEdit) -> str:
        name = f"{edit.start} {edit}"
        if known := book[name]:
            return known
        tree = free.get()
        try:
            by = noticed_by(tree, edit, covered)
        finally:
            free.put(tree)
        with writing:
            book[name] = by
            print(f"{f'noticed by {by}' if by else 'SURVIVED'}: {edit}", flush=True)
        return by

    with ThreadPoolExecutor(len(trees)) as pool:
        noticers = list(pool.map(noticer, edits))
    anyway = _failing(trees[0], [by for by in noticers if by.startswith("tests/")])
    for edit, by in zip(edits, noticers, strict=True):
        if by in anyway:
            print(f"SURVIVED, as {by} fails anyway: {edit}", flush=True)
    return [edit for edit, by in zip(edits, noticers, strict=True) if not by or by in anyway]


def noticed_by(tree: Tree, edit: SingleEdit, covered: Covering) -> str:
    """The test that noticed an edit; ``""`` if none did."""
    text = (tree.root / edit.file).read_text(encoding="utf-8")
    is_python = edit.file.endswith(".py")
    with tree.edited(edit.file, edit.applied(text)):
        try:
            if not is_python and tree.fails(_PROGRAMS, longest_s=_HANGS_S):
                return "C tests"
            waves = (
                covered.of(edit, root=tree.root, longest_s=_LONGEST_S) if is_python else [list(_NATIVE_TESTS)]
            )
            return next(filter(None, (_first_failing(tree, tests) for tests in waves)), "")
        except subprocess.TimeoutExpired:
            return "a test that hangs"
        except BuildError:
            return "the compiler"


def _first_failing(tree: Tree, tests: list[str]) -> str:
    done = tree.pytest(["-x", *_OPTIONS, *tests], longest_s=_HANGS_S)
    if done.returncode == _USAGE_ERROR and "not found" in done.stderr:
        raise LookupError(done.stderr)
    if done.returncode == 0:
        return ""
    return next(iter(_FAILED.findall(done.stdout)), "pytest itself")


def _failing(tree: Tree, tests: Sequence[str]) -> set[str]:
    """The tests that fail in an unedited copy."""
    if not tests:
        return set()
    done = tree.pytest([*_OPTIONS, *dict.fromkeys(tests)], longest_s=_HANGS_S + len(tests) * _LONGEST_S)
    return set(_FAILED.findall(done.stdout))
