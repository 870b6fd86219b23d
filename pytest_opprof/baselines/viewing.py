"""Find traces to look at: of a test by its name, and of the tests of a run or comparison."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_opprof.baselines.traces import SIDES, SUFFIX, SavedTraces
from pytest_opprof.errors import StoreError, UsageError
from pytest_opprof.results.files import read_head, shown, store_errors
from pytest_opprof.results.names import DIGEST_OF_STEM, canonical_node_id, parts_of, trace_stem
from pytest_opprof.results.run import Run
from pytest_opprof.wording import listed

_HEAD_BYTES: Final = 4096
_KIND: Final = re.compile(rb'\s*\{[^{}\[\]]{0,200}"kind":\s*"opprof-')
_NAME: Final = re.compile(
    rf"(?P<stem>.+-[0-9a-f]{{{DIGEST_OF_STEM}}})(?:\.(?P<part>base|head|cycle\d+))?{re.escape(SUFFIX)}"
)
_MOST_NAMES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewable:
    """A test that has traces."""

    test: str  # its node id if known, else its files' name
    files: Mapping[str, Path]  # its traces by side; the only trace of an uncompared test is "head"

    def of(self, side: str) -> tuple[Path, ...]:
        """The files of a side; for "both" base first, or the only one. Raises `UsageError` without one."""
        if side == "both":
            return tuple(self.files[name] for name in SIDES if name in self.files)
        if side not in self.files:
            raise UsageError(
                f"{self.test}: there is no trace of the {side}, only of the {', '.join(self.files)}"
            )
        return (self.files[side],)


def is_document(path: Path) -> bool:
    """Whether a file is a run or comparison, or else a trace, by its first bytes; `UsageError` if neither."""
    with store_errors(path, "cannot be read"):
        head = read_head(path, size=_HEAD_BYTES)
    if head.lstrip()[:1] not in {b"{", b"["}:
        raise UsageError(f"{shown(path)}: this is not a trace, a run or a comparison")
    return _KIND.match(head) is not None


def viewable_tests(folder: Path) -> list[Viewable]:
    """All tests with traces in a folder, by name; raises `StoreError` if it cannot be read."""
    found: dict[str, dict[str, Path]] = {}
    try:
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise StoreError(f"{shown(folder)} cannot be read: {error.strerror or error}") from error
    for path in paths:
        name = _NAME.fullmatch(path.name)
        if name is not None:
            side = name["part"] if name["part"] in SIDES else "head"
            files = found.setdefault(name["stem"], {})
            if name["part"] in SIDES or side not in files:
                files[side] = path  # a pair outranks a requested trace of the same test
    return [Viewable(test=stem, files=files) for stem, files in found.items()]


def viewable_by_name(folder: Path, name: str) -> Viewable:
    """The test with this node id or files' name, or else the only one whose name contains it.

    Raises `UsageError` if there is none, or if there are several.
    """
    node_id = canonical_node_id(name)
    stem = trace_stem(node_id)
    # A name may lack its file: "test_op[aten::add]".
    plain = trace_stem(f"::{node_id}").rpartition("-")[0]
    tests = viewable_tests(folder)
    exact = [one for one in tests if one.test in {stem, name}]
    names = [(one.test.rpartition("-")[0], one) for one in tests]
    called = exact or [one for other, one in names if other == plain]
    return _only(called or [one for other, one in names if plain in other], tests, name, folder)


def viewable_of_run(folder: Path, run: Run) -> list[Viewable]:
    """The tests of a run that have traces: of just this run, else any in the folder."""
    saved = SavedTraces(folder=folder, budget=0)
    own = {test.node_id: path for test in run.tests if (path := saved.of(test, run)) is not None}
    others = viewable_of_tests(folder, (test.node_id for test in run.tests if test.node_id not in own))
    return [*(Viewable(test=test, files={"head": path}) for test, path in own.items()), *others]


def viewable_of_tests(folder: Path, node_ids: Iterable[str]) -> list[Viewable]:
    """The tests that have traces in a folder."""
    there = {one.test: one.files for one in viewable_tests(folder)}
    stems = {node_id: trace_stem(node_id) for node_id in node_ids}
    return [Viewable(test=node_id, files=there[stem]) for node_id, stem in stems.items() if stem in there]


def viewable_like(tests: list[Viewable], text: str, *, folder: Path) -> Viewable:
    """The test whose node id is or contains this text; raises `UsageError` for none or several."""
    exact = [one for one in tests if text in {one.test, parts_of(one.test)[-1]}]
    return _only(exact or [one for one in tests if text in one.test], tests, text, folder)


def _only(found: list[Viewable], there: list[Viewable], wanted: str, folder: Path) -> Viewable:
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{wanted!r} names several tests with traces: {_names(found)}. Name one of them")
    has = f"there are: {_names(there)}" if there else "there are none"
    raise UsageError(f"no test {wanted!r} with a trace in {shown(folder)} ({has})")


def _names(tests: list[Viewable]) -> str:
    return listed([one.test for one in tests], most=_MOST_NAMES)
