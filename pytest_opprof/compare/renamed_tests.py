"""Baseline tests that the user says were renamed, compared under their new names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pytest_opprof.errors import UsageError
from pytest_opprof.results.run import Run
from pytest_opprof.wording import counted

_ARROW = "->"
# What may follow a folder, a file or class, and a function in a node id.
_NEXT = ("::", "[")
_SIDES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """A test, or all tests of a function with parameters, of a class, a file or a folder (with a ``/``)."""

    old: str  # its name in the baseline
    new: str  # its present name

    def __str__(self) -> str:
        """As users write it."""
        return f"{self.old} {_ARROW} {self.new}"

    def now(self, node_id: str) -> str | None:
        """The new name of a test; None if this does not rename it.

        >>> Renamed(old="tests/test_a.py", new="tests/b/test_a.py").now("tests/test_a.py::test_x[1]")
        'tests/b/test_a.py::test_x[1]'
        """
        rest = node_id.removeprefix(self.old)
        is_meant = node_id.startswith(self.old) and (
            not rest or self.old.endswith("/") or rest.startswith(_NEXT)
        )
        return self.new + rest if is_meant else None


def parse_renames(texts: Iterable[str], *, where: str) -> tuple[Renamed, ...]:
    """Read ``tests/test_a.py::test_x -> tests/test_b.py::test_x``."""
    renames = []
    for text in texts:
        sides = [side.strip() for side in text.split(_ARROW)]
        if len(sides) != _SIDES or not all(sides):
            raise UsageError(f"{where}: {text!r} is not a rename: write it like 'test_a.py -> test_b.py'")
        renames.append(Renamed(old=sides[0], new=sides[1]))
    return tuple(renames)


def with_new_names(run: Run, renames: Sequence[Renamed]) -> tuple[Run, tuple[str, ...]]:
    """A baseline with its tests under their new names, and a sentence on the result of each renaming.

    A test that already has the new name keeps it. Of several renames of a test, the first counts.
    """
    known = {test.node_id for test in run.tests}
    names: dict[str, str] = {}
    counts = dict.fromkeys(renames, 0)
    for node_id in sorted(known):
        rename = next((one for one in renames if one.now(node_id) is not None), None)
        new = rename.now(node_id) if rename else None
        if rename is not None and new is not None and new not in known:
            known.add(new)
            names[node_id] = new
            counts[rename] += 1
    tests = tuple(replace(test, node_id=names.get(test.node_id, test.node_id)) for test in run.tests)
    notes = tuple(_note(rename, count, run) for rename, count in counts.items())
    return replace(run, tests=tests), notes


def _note(rename: Renamed, count: int, run: Run) -> str:
    if not count:
        return f"{run.title} has no test to rename by '{rename}': remove this rename"
    return f"{counted(count, 'test')} of {run.title} compared under another name: {rename}"
