"""The line that makes functions run more.

The calls of functions are compared like those of ops.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from pytest_opprof.baselines.edited_file import EditedFile
from pytest_opprof.compare.call_sites import CallSites, line_at
from pytest_opprof.compare.comparison import CallLine
from pytest_opprof.compare.edited_line import edit_at, edit_behind
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import COUNT, PYTHON_INSTRUCTIONS
from pytest_opprof.results.build import MAX_FUNCTIONS
from pytest_opprof.results.run import OpRow, TestResult
from pytest_opprof.results.samples import Samples

# A function whose rise is less than one in so many of the largest one's is not the cause.
_PARTS = 10
_MOST = 8  # functions that are looked at


class GrownLines:
    """Finds the line to look at for functions that run more instructions."""

    def __init__(self, base: TestResult, head: TestResult, edited: Mapping[str, EditedFile]) -> None:
        self._sides = _with_calls_as_ops(base), _with_calls_as_ops(head)
        self._rows = tuple({row.name: row for row in side.ops} for side in self._sides)
        self._sites = CallSites(*self._sides)
        self._edited = edited
        self._are_known = bool(base.calls and head.calls)

    def line_of(self, risen: Sequence[tuple[str, int]], metric: str) -> CallLine | None:
        """The line that makes functions run more, each given with its rise; None if none is known.

        A function that is called more often has the line that calls it so, or the edited line that makes that
        run more often. One that does more in each call has its own edit, or one on the way to it. Edits
        come first if those of one function explain at least half of the rise.
        """
        # What only libraries call has no line.
        called = [item for item in risen if item[0] in self._rows[1]] or risen
        ranked = sorted(called, key=lambda item: (-item[1], item[0]))[:_MOST]
        lines = [
            (line, rise)
            for function, rise in ranked
            if rise * _PARTS >= ranked[0][1] and (line := self._line_of(function, metric)) is not None
        ]
        if not lines:
            return None
        shares: Counter[tuple[str, str]] = Counter()
        for line, rise in lines:
            shares[line.function, line.file] += rise
        found = next((line for line, _ in lines if line.is_edited), lines[0][0])
        place = found.function, found.file
        if found.is_edited and 2 * shares[place] < shares.total():
            place = max(shares, key=lambda one: shares[one])
            if 2 * shares[place] < shares.total():
                return replace(found, is_certain=False)
        here = [line for line, _ in lines if (line.function, line.file) == place]
        found = next((line for line in here if line.is_edited), here[0])
        # A line that calls more says more than the head of a function.
        others = (line for line in here if line.number != found.number)
        return next(others, found) if self._is_mere_head(found) else found

    def _is_mere_head(self, line: CallLine) -> bool:
        """Whether a line is the head of a function that is new, or that only lost statements."""
        if self._is_new(line):
            return line.text.startswith(("def ", "async def "))
        return line.file in self._edited and line.number == self._edited[line.file].cutting(line.function)

    def caller_of(self, line: CallLine) -> CallLine | None:
        """The edited line that calls the function of an unedited line more often; None if there is none."""
        function = f"{line.function}, {line.file}"
        growth = self._growth(function)
        is_possible = self._are_known and growth > 1 and not self._is_new(line)
        origin = self._origin(function) if is_possible else None
        if origin is None:
            return None
        found = self._outermost(self._edit_behind(origin), growth=growth)
        return replace(found, is_certain=found.is_certain and line.is_certain) if found.is_edited else None

    def edit_that_ran(self) -> CallLine | None:
        """An edit of a function that the test ran, for what no line is known to call; None if there is none.

        Of several, none is certain: what is in a loop comes first, then what is called most often.
        """
        called = self._rows[1]
        ran = {*self._sides[1].functions.get(PYTHON_INSTRUCTIONS.name, {}), *called}
        edits = {line.place: line for place in sorted(ran) if (line := self._own_edit(place))}

        def rank(line: CallLine) -> tuple[bool, int]:
            is_in_a_loop = self._edited[line.file].share_a_loop(line.number)
            return not is_in_a_loop, -_calls(called.get(f"{line.function}, {line.file}"))

        first = min(edits.values(), key=rank, default=None)
        return first and replace(first, is_certain=first.is_certain and len(edits) == 1)

    def _line_of(self, function: str, metric: str) -> CallLine | None:
        origin, own = self._origin(function), self._own_edit(function)
        is_edited = origin is not None and self._is_edited(origin)
        if self._is_called_more(function, metric):
            if origin is None:
                return None
            if own and self._is_new(own) and not is_edited:
                return own  # such as what an unedited line calls in place of something else
            return self._outermost(self._edit_behind(origin), growth=self._growth(function))
        # Calls that an edited line adds may do more in each than those before.
        added = origin and replace(origin, is_edited=True) if is_edited else None
        return own or added or self._edit_on_the_way(self._rows[1].get(function))

    def _origin(self, function: str) -> CallLine | None:
        """The line that calls a function more often, and whose own function is not called as much more.

        A function that is new is not followed to its caller: it has the code that is called more often. One
        that a line calls more often because of its own decorator, such as a lost cache, is the origin itself.
        """
        found, seen = None, set[str]()
        while function not in seen:
            seen.add(function)
            before, after = self._rows_of(function)
            line = None if after is None else self._sites.risen(before, after)
            if line is None or after is None:
                return found
            decorator = self._edited_decorator(function)
            found, function = line, f"{line.function}, {line.file}"
            calls = [_calls(row) for row in self._rows_of(function)]
            made = self._sites.calls_before(line.place, before), after.places.get(line.place, 0)
            if self._is_new(line) or calls[1] <= calls[0] or made[1] * calls[0] > made[0] * calls[1] > 0:
                return decorator if decorator and not self._is_edited(line) else found
        return found

    def _is_edited(self, line: CallLine) -> bool:
        return self._sites.is_edited(line, self._edited.get(line.file, ()))

    def _rows_of(self, function: str) -> tuple[OpRow | None, OpRow | None]:
        """A function's row on both sides, if it was renamed or moved, too."""
        before, after = self._rows
        return before.get(self.older.get(function, function)), after.get(function)

    @cached_property
    def older(self) -> dict[str, str]:
        """By function that the base lacks: its name there, if it was moved or renamed.

        A new one is a renamed one with another body if the same lines call it as often as one that is gone.
        """
        before, after = self._rows
        gone = before.keys() - after.keys()
        found = {}
        for function in after.keys() - before.keys():
            name, _, file = function.rpartition(", ")
            likely = [old for old in gone if old.rpartition(", ")[0] == name]
            if not likely and file in self._edited:
                edited = self._edited[file]
                here = [old.rpartition(", ") for old in gone]
                olds = [old for old, _, its in here if its == file and not edited.defines(old)]
                likely = [f"{old}, {file}" for old in olds if _inner(old) == _inner(name)]
                if name in edited.new:
                    places = after[function].places
                    likely = [old for old in likely if self._sites.places_now(before[old]) == places]
            if len(likely) == 1:
                (found[function],) = likely
        return found

    def _edited_decorator(self, place: str) -> CallLine | None:
        function, _, file = place.rpartition(", ")
        number = self._edited[file].decoration(function) if file in self._edited else 0
        return edit_at(function, file, number, self._edited[file]) if number else None

    def _outermost(self, line: CallLine, *, growth: float) -> CallLine:
        """An edited line, or the edited one whose more calls of its function explain all growth."""
        seen = set[str]()
        while line.is_edited and line.place not in seen:
            seen.add(line.place)
            function = f"{line.function}, {line.file}"
            if self._is_new(line) or self._growth(function) < growth:
                break
            origin = self._origin(function)
            around = None if origin is None else self._edit_behind(origin)
            if around is None or not around.is_edited:
                break
            line = around
        return line

    def _is_new(self, line: CallLine) -> bool:
        """Whether a line's function is new."""
        return line.file in self._edited and line.function in self._edited[line.file].new

    @property
    def _is_cut(self) -> bool:
        """Whether the base may have calls of more functions."""
        return len(self._rows[0]) == MAX_FUNCTIONS

    def _growth(self, function: str) -> float:
        """How many times as often as before it is called."""
        before, after = map(_calls, self._rows_of(function))
        if not before and self._is_cut:
            return 1
        return after / before if before else math.inf if after else 1

    def _is_called_more(self, function: str, metric: str) -> bool:
        """Whether at least half of its rise is due to more calls of it, not to more work in each."""
        calls = [_calls(row) for row in self._rows_of(function)]
        names = self.older.get(function, function), function
        counts = [
            side.functions.get(metric, {}).get(name, 0) for side, name in zip(self._sides, names, strict=True)
        ]
        if not calls[0]:
            return bool(calls[1]) and not self._is_cut
        return 2 * (calls[1] - calls[0]) * counts[0] >= calls[0] * (counts[1] - counts[0]) > 0

    def _edit_behind(self, line: CallLine) -> CallLine:
        return line if line.is_edited else edit_behind(line, self._sites, self._edited)

    def _own_edit(self, place: str) -> CallLine | None:
        """The first edit of a function, or of the one that a comprehension or lambda is written in."""
        function, _, file = place.rpartition(", ")
        if file not in self._edited:
            return None
        edited, inner = self._edited[file], function
        numbers: list[int] = []
        while function and not numbers:
            inner, numbers = function, [number for name, number in edited.places if name == function]
            outer, _, own = function.rpartition(".<locals>.")
            function = outer if own.startswith("<") else ""
        if not numbers and (cut := edited.cutting(inner)):
            numbers = [cut]
        return edit_at(inner, file, numbers[0], edited, is_certain=len(numbers) == 1) if numbers else None

    def _edit_on_the_way(self, row: OpRow | None) -> CallLine | None:
        """The edit that gives a function more to do in each call, if one line alone calls it most."""
        if row is None or not row.places:
            return None
        line = line_at(max(row.places, key=lambda place: row.places[place]), self._sides[1], is_certain=True)
        found = self._edit_behind(line) if line else None
        return found if found and found.is_edited else None


def _with_calls_as_ops(test: TestResult) -> TestResult:
    """The test with a row for each function that its lines call, and with the callers of these lines."""
    rows = [
        OpRow(
            name=function,
            kind=OpKind.CALL,
            metrics={COUNT.name: Samples.constant(sum(places.values()), steps=1)},
            places=places,
        )
        for function, places in test.calls.items()
    ]
    places = {place for called_from in test.calls.values() for place in called_from}
    callers = {place: _ranked(test.calls.get(place.rpartition(":")[0], {})) for place in places}
    return replace(test, steps=1, ops=tuple(rows), callers=callers)


def _ranked(places: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted(places, key=lambda place: (-places[place], place)))


def _inner(function: str) -> str:
    """The kind of a comprehension or lambda; empty for a function that has a name."""
    return function.rpartition(".")[2] if function.endswith(">") else ""


def _calls(row: OpRow | None) -> int:
    return sum(row.places.values()) if row else 0
