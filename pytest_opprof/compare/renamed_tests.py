"""Renamed tests: those that the user says were renamed, and suggestions of others that look so."""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import ne

from pytest_opprof.compare.comparison import TestComparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import UsageError
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import PYTHON_INSTRUCTIONS
from pytest_opprof.results.names import STEP_NAME, bounded_text
from pytest_opprof.results.run import Run, TestResult
from pytest_opprof.wording import counted

_ARROW = "->"
_BETWEEN = re.compile(r"->(?![^\[]*\])")  # no arrow of a test's parameters, as in test_e[ij->ji]
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
        sides = [side.strip() for side in _BETWEEN.split(text)]
        if len(sides) != _SIDES or not all(sides):
            raise UsageError(f"{where}: {text!r} is not a rename: write it like 'test_a.py -> test_b.py'")
        renames.append(Renamed(old=sides[0], new=sides[1]))
    return tuple(renames)


def with_new_names(run: Run, renames: Sequence[Renamed]) -> tuple[Run, tuple[str, ...]]:
    """A baseline with its tests under their new names, and a sentence on the result of each renaming.

    A test that already has the new name keeps it, unless it is renamed itself. Of several renames of a test,
    the first counts.
    """
    known = {test.node_id for test in run.tests}
    moves: dict[str, tuple[str, Renamed]] = {}  # by new name
    for node_id in sorted(known):
        rename = next((one for one in renames if one.now(node_id) is not None), None)
        new = rename.now(node_id) if rename else None
        if rename is not None and new is not None and new != node_id:
            moves.setdefault(new, (node_id, rename))
    # A test that stays may be in the way of another, which then stays too.
    while taken := moves.keys() & (known - {old for old, _ in moves.values()}):
        for new in taken:
            del moves[new]
    names = {old: new for new, (old, _) in moves.items()}
    counts = Counter(rename for _, rename in moves.values())
    tests = tuple(replace(test, node_id=names.get(test.node_id, test.node_id)) for test in run.tests)
    notes = tuple(_note(rename, counts[rename], run) for rename in dict.fromkeys(renames))
    return replace(run, tests=tests), notes


def _note(rename: Renamed, count: int, run: Run) -> str:
    if not count:
        return (
            f"{run.title} has no test to rename by '{rename}', or the new name is taken: remove this rename"
        )
    return f"{counted(count, 'test')} of {run.title} compared under another name: {rename}"


_LIKE_BY_NAME = 0.5
_LIKE_BY_OPS = 0.9
_FEW_OPS = 3  # many tests run so few that a match means nothing
_MOST_PAIRS = 2_500  # more are compared op by op only if their names are alike


@dataclass(frozen=True, slots=True)
class _Test:
    """One side: its place among the tests, the parts of its node id, and what it runs how much.

    What it runs are its ops and ranges, each with the calls in a step. Without any, these are the project's
    functions, each with its Python instructions.
    """

    at: int
    node_id: str
    function: str
    around: tuple[str, str, str]  # its file, its classes, its parameters
    runs: Mapping[tuple[str, OpKind], float]

    def is_named_like(self, other: _Test) -> bool:
        """Whether one part of the name differs, and the function is the same."""
        return self.function == other.function and sum(map(ne, self.around, other.around)) == 1


def with_suggestions(tests: Sequence[TestComparison]) -> list[TestComparison]:
    """The tests, in their order; a reason names the likely old or new name of a test.

    A removed test and a new test are suggested as a pair, never judged as the same, if

    * their node ids differ only by the file, the class or the parameters, and at least half of what they run
      is the same, or
    * they run many ops (or, without ops, functions), and nearly all of them are the same;

    and each is the other's only best match.
    """
    gone = [
        _test(at, test.base)
        for at, test in enumerate(tests)
        if test.verdict is Verdict.MISSING and test.base is not None and test.base.is_usable
    ]
    new = [
        _test(at, test.head)
        for at, test in enumerate(tests)
        if test.base is None and test.head is not None and test.head.is_usable
    ]
    found = list(tests)
    for before, after, likeness in _pairs(gone, new):
        how = _words(likeness, before)
        rename = shlex.quote(str(Renamed(old=before.node_id, new=after.node_id)))
        sentence = f"looks like {after.node_id}, which is new ({how}): the same? --opprof-rename={rename}"
        found[before.at] = _told(found[before.at], sentence)
        found[after.at] = _told(found[after.at], f"looks like {before.node_id}, which is gone ({how})")
    return found


def _words(likeness: float, test: _Test) -> str:
    if likeness < _LIKE_BY_OPS:
        return "its name differs in one part"
    what = "functions" if all(kind is OpKind.CALL for _, kind in test.runs) else "ops"
    return f"it runs the same {what}" if likeness == 1 else f"it runs nearly the same {what}"


def _told(test: TestComparison, sentence: str) -> TestComparison:
    reason = "; ".join(filter(None, (test.reason, sentence)))
    return replace(test, reason=bounded_text(reason))


def _test(at: int, test: TestResult) -> _Test:
    file, _, rest = test.node_id.partition("::")
    name, bracket, params = rest.partition("[")
    classes, _, function = name.rpartition("::")
    ops: dict[tuple[str, OpKind], float] = {
        (row.name, row.kind): row.count.mean
        for row in test.ops
        # An op that only another process ran has a range here, but no total.
        if row.count.total and not row.background
        if row.kind is not OpKind.CALL and row.name != STEP_NAME
    }
    functions = {
        (place, OpKind.CALL): float(count)
        for place, count in test.functions.get(PYTHON_INSTRUCTIONS.name, {}).items()
        if function not in place.rpartition(", ")[0].split(".")  # the test itself has another name
    }
    return _Test(
        at=at,
        node_id=test.node_id,
        function=function,
        around=(file, classes, bracket + params),
        runs=ops or functions,
    )


def _pairs(gone: Sequence[_Test], new: Sequence[_Test]) -> Iterable[tuple[_Test, _Test, float]]:
    """Tests that are each other's best match, with their likeness, 0 to 1."""
    scores: dict[tuple[int, int], tuple[bool, float]] = {}
    for before, after in _candidates(gone, new):
        alike, is_named = _likeness(before.runs, after.runs), before.is_named_like(after)
        is_enough = alike >= _LIKE_BY_OPS and min(len(before.runs), len(after.runs)) >= _FEW_OPS
        if is_enough or (is_named and alike >= _LIKE_BY_NAME):
            scores[before.at, after.at] = (is_named, alike)
    best_after, best_before = _best(scores, side=0), _best(scores, side=1)
    by_place = {test.at: test for test in (*gone, *new)}
    for (before_at, after_at), (_, alike) in scores.items():
        if best_after.get(before_at) == after_at and best_before.get(after_at) == before_at:
            yield by_place[before_at], by_place[after_at], alike


def _candidates(gone: Sequence[_Test], new: Sequence[_Test]) -> Iterable[tuple[_Test, _Test]]:
    if len(gone) * len(new) <= _MOST_PAIRS:
        return [(before, after) for before in gone for after in new]
    by_name: dict[str, list[_Test]] = defaultdict(list)
    for after in new:
        by_name[after.function].append(after)
    return [
        (before, after)
        for before in gone
        for after in by_name[before.function][: _MOST_PAIRS // len(gone) + 1]
    ]


def _likeness(one: Mapping[tuple[str, OpKind], float], other: Mapping[tuple[str, OpKind], float]) -> float:
    """The mean, over all ops, of the share that both sides have."""
    keys = one.keys() | other.keys()
    if not keys:
        return 0.0
    both = [(one.get(key, 0), other.get(key, 0)) for key in keys]
    return sum(min(pair) / max(pair) for pair in both) / len(keys)


def _best(scores: Mapping[tuple[int, int], tuple[bool, float]], *, side: int) -> dict[int, int]:
    """For each test of one side the other's best match; none if two are as good."""
    ranked: dict[int, list[tuple[tuple[bool, float], int]]] = defaultdict(list)
    for pair, score in scores.items():
        ranked[pair[side]].append((score, pair[1 - side]))
    best = {}
    for at, answers in ranked.items():
        top = max(score for score, _ in answers)
        winners = [other for score, other in answers if score == top]
        if len(winners) == 1:
            best[at] = winners[0]
    return best
