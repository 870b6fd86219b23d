"""The line that calls an op more often now, not one that only moved or was rewritten.

A line is known by its file, its function and its text, never by its number. The lines that a test ran are
aligned like those of a diff: function by function, by their texts.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher, get_close_matches
from functools import cached_property, lru_cache

from pytest_opprof.compare.comparison import CallLine
from pytest_opprof.metrics import COUNT
from pytest_opprof.results.build import MAX_PLACES
from pytest_opprof.results.run import OpRow, TestResult

# Two lines that are at least so similar are one edited line.
_SIMILAR = 0.6
# Two functions that share at least this part of their lines are one renamed function.
_SAME_FUNCTION = 0.5
_FEWER_PLACES = 64  # kept by older releases
_CALLS = re.compile(r"\b(?:for|while)\b|\w+(?=\()")
# More are not compared one by one.
_MOST_PAIRS = 20_000


@dataclass(frozen=True, slots=True, order=True)
class _Line:
    number: int
    place: str = field(compare=False)
    text: str = field(compare=False)


class CallSites:
    """The lines that call a test's ops, on both sides: in the base and in the head."""

    def __init__(self, base: TestResult, head: TestResult) -> None:
        self.sides = base, head
        # Calls are over all steps, so each side's are multiplied by the other's number of steps.
        self._weights = (head.steps, base.steps)

    def risen(self, base: OpRow | None, head: OpRow, *, metric: str = COUNT.name) -> CallLine | None:
        """The line that calls an op more often now; None if no line is known.

        New and edited lines come first, because the others run more often through them; then the largest
        rise. If another metric than the calls rose, and its parts by line are unknown, a line is named only
        if no other line calls the op, or no other was edited.
        """
        if metric in head.parts and (base is None or metric in base.parts or base.places):
            rises = self._rises(
                base.parts.get(metric, {}) if base else {}, head.parts[metric], is_cut=_is_cut(base)
            )
            place = max(rises, key=lambda place: rises[place], default="")
            if place and rises[place] > 0:
                return self._line(place, is_certain=True)
        if not head.places:
            return self._line(head.source, is_certain=base is None) if head.source else None
        if base is not None and not base.places:
            return self._line(next(iter(head.places)), is_certain=False)
        is_cut = _is_cut(base)
        rises = self._rises(base.places if base else {}, head.places, is_cut=is_cut)
        anew = {place for place in head.places if place not in self._same}
        if is_cut:
            anew &= self._known
        place = max(rises, key=lambda place: (rises[place] > 0, place in anew, rises[place]))
        if rises[place] > 0:
            return self._line(place, is_certain=True)
        if metric == COUNT.name:
            return None
        suspects = [place for place in head.places if place in anew] or list(head.places)
        return self._line(suspects[0], is_certain=len(suspects) == 1)

    def calls_before(self, place: str, base: OpRow | None, *, metric: str = COUNT.name) -> int:
        """How often a line of the head called an op of the base; or its part of another metric."""
        places = (base.places if metric == COUNT.name else base.parts.get(metric, {})) if base else {}
        return sum(places.get(old, 0) for old, now in self._now.items() if now == place)

    def places_now(self, base: OpRow) -> Mapping[str, int]:
        """How often each line of the head, as far as it is known, called an op of the base."""
        found: Counter[str] = Counter()
        for place, calls in base.places.items():
            found[self._now.get(place, place)] += calls
        return found

    def is_edited(self, line: CallLine, edited: Container[int]) -> bool:
        """Whether a line was edited, or an equal one of its function: of two, a diff takes either for new."""
        head, function = self.sides[1], _function(line.place)
        twins = (
            place for place, text in head.lines.items() if text == line.text and _function(place) == function
        )
        return line.number in edited or any(_number(place) in edited for place in twins)

    def is_of_callers(self, line: CallLine, edited: Container[int]) -> bool:
        """Whether all lines of its function run more often by one factor, one that was not edited too.

        Then what calls the function is to blame, whatever else was edited in it. In a loop that is new, lines
        are edited: they stand further in. All lines are where the function has another name or another file.
        If it has one line alone, all ops of that line run more often by that factor.
        """
        function = _function(line.place)
        pairs = [(old, now) for old, now in self._now.items() if _function(now) == function]
        factors = {now: max(self._growths([old], now), default=0) for old, now in pairs}
        one = factors.pop(line.place, 0)
        has_moved = all(_function(old) != function for old, _ in pairs)
        if not factors:
            growths = set(self._growths([old for old, _ in pairs], line.place))
            return has_moved and len(growths) == 1 and growths.pop() > 1
        if one <= 1 or set(factors.values()) != {one}:
            return False
        return has_moved or any(_number(now) not in edited for now in factors)

    def calls_as_before(self, line: CallLine) -> bool:
        """Whether a line has another text than in the base, with the same calls and loops."""
        olds = (self.sides[0].lines.get(old, "") for old, now in self._now.items() if now == line.place)
        return any(old != line.text and _CALLS.findall(old) == _CALLS.findall(line.text) for old in olds)

    def calls_more(self, line: CallLine) -> bool:
        """Whether a line calls more ops: not if it only calls another one in place of each."""
        olds = {old for old, now in self._now.items() if now == line.place}
        weight_before, weight_after = self._weights
        before = sum(row.places.get(old, 0) for row in self.sides[0].ops for old in olds)
        after = sum(row.places.get(line.place, 0) for row in self.sides[1].ops)
        return after * weight_after > before * weight_before

    def _growths(self, olds: Sequence[str], now: str) -> list[float]:
        """Of each op of a line, how many times as often as before the line calls it; 0 for a new one."""
        before, after = ({row.key: row.places for row in side.ops} for side in self.sides)
        weight_before, weight_after = self._weights
        found: list[float] = []
        for key, places in after.items():
            if now in places:
                calls = sum(before.get(key, {}).get(old, 0) for old in olds)
                found.append(places[now] * weight_after / (calls * weight_before) if calls else 0)
        return found

    def _line(self, place: str, *, is_certain: bool) -> CallLine | None:
        return line_at(place, self.sides[1], is_certain=is_certain)

    def _rises(self, before: Mapping[str, int], after: Mapping[str, int], *, is_cut: bool) -> dict[str, int]:
        """By line of the head: how many more calls there are, over both sides' steps multiplied.

        If the base may have more lines (`is_cut`), such a line counts as the smallest that is kept.
        """
        weight_before, weight_after = self._weights
        least = min(before.values(), default=0) * weight_before if is_cut else 0
        met = {self._now.get(place) for place in before}
        rises = {
            place: calls * weight_after if place in met else max(0, calls * weight_after - least)
            for place, calls in after.items()
        }
        gone: list[tuple[str, int]] = []
        for place, calls in before.items():
            now = self._now.get(place)
            if now in rises:
                rises[now] -= calls * weight_before
            else:
                gone.append((place, calls * weight_before))
        fell = {now: old for old, now in self._now.items() if rises.get(now, 0) < 0}
        gone += [(old, -rises[now]) for now, old in fell.items()]
        for place, calls in gone:
            anew = [now for now, rise in rises.items() if rise > 0 and self._may_take_over(place, now)]
            anew.sort(key=lambda now: (rises[now] != calls, -self._likeness(place, now)))
            left = calls
            for now in anew:
                taken = min(left, rises[now])
                rises[now] -= taken
                left -= taken
        return rises

    def _may_take_over(self, place: str, now: str) -> bool:
        """Whether a line of the head may have the calls of a line that is gone, or that is called less.

        Unlike lines of its function may: it was written anew, perhaps on several lines. A part of a line that
        stayed, or whose function calls it, may have been taken out into a new function. A line with the same
        text may have moved to any function, and of two copies of a function one may have been removed.
        """
        base, head = self.sides
        is_same = base.lines.get(place) == head.lines.get(now, "")
        if now in self._known:
            return is_same and _function(place) not in self._names
        function, callers = self._names.get(_function(place)), head.callers.get(now, ())
        if is_same or _function(now) == function:
            return True
        is_called = any(_function(caller) == function for caller in callers)
        return _function(now) in self._new and (place in self._now or is_called)

    def _likeness(self, place: str, now: str) -> float:
        base, head = (side.lines for side in self.sides)
        return _likeness(base.get(place, ""), head.get(now, ""))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self._now.values())

    @cached_property
    def _same(self) -> frozenset[str]:
        """The lines of the head that the base has, word for word."""
        base, head = (side.lines for side in self.sides)
        return frozenset(now for place, now in self._now.items() if base.get(place) == head.get(now))

    @cached_property
    def _lines(self) -> tuple[dict[str, list[_Line]], dict[str, list[_Line]]]:
        base, head = map(_lines_by_function, self.sides)
        return base, head

    @cached_property
    def _names(self) -> dict[str, str]:
        """By function of the base: the same function in the head, if the likest one is left."""
        before, after = self._lines
        found = {function: function for function in before if function in after}
        ranked = sorted(
            (rank, old, new)
            for old in before.keys() - found.keys()
            for new in after.keys() - found.keys()
            if (rank := self._unlikeness(old, new)) is not None
        )
        for _, old, new in ranked:
            if old not in found and new not in found.values():
                found[old] = new
        return found

    def _unlikeness(self, old: str, new: str) -> tuple[float, ...] | None:
        """Sorts the pairs that may be one function with two names: the likest first; None for others.

        Such a function is in another file, or has enough of the same lines, or is the same method of a class
        with another name. More of the same lines make a pair likelier, then as many calls.
        """
        before, after = (side[function] for side, function in zip(self._lines, (old, new), strict=True))
        shared = len({line.text for line in before} & {line.text for line in after})
        part = shared / max(len(before), len(after))
        is_moved, is_namesake = (
            old.partition(", ")[0] == new.partition(", ")[0],
            _own_name(old) == _own_name(new),
        )
        if not (is_moved or part >= _SAME_FUNCTION or is_namesake):
            return None
        texts = ["\n".join(line.text for line in lines) for lines in (before, after)]
        likeness = 0 if part >= _SAME_FUNCTION else SequenceMatcher(None, texts[0], texts[1]).quick_ratio()
        calls = [
            weight * sum(row.places.get(line.place, 0) for row in side.ops for line in lines)
            for side, weight, lines in zip(self.sides, self._weights, (before, after), strict=True)
        ]
        return (not is_moved, -part, -likeness, -min(calls) / (max(calls) or 1))

    @cached_property
    def _new(self) -> frozenset[str]:
        """The functions that the base lacks."""
        return frozenset(self._lines[1].keys() - self._names.values())

    @cached_property
    def _now(self) -> dict[str, str]:
        """By line of the base: the same line in the head."""
        before, after = self._lines
        found: dict[str, str] = {}
        for function, now in self._names.items():
            found.update(_aligned(before[function], after[now]))
        # What is left may have been taken out into a function that is new: several lines may be one there.
        texts = {line.text: line.place for function in sorted(self._new) for line in after[function]}
        left = [line for lines in before.values() for line in lines if line.place not in found]
        for line in left if len(left) * len(texts) <= _MOST_PAIRS else ():
            for text in get_close_matches(line.text, texts, n=1, cutoff=_SIMILAR):
                found[line.place] = texts[text]
        return found


def _is_cut(row: OpRow | None) -> bool:
    """Whether more lines may have called an op than its row has."""
    return row is not None and len(row.places) in {MAX_PLACES, _FEWER_PLACES}


def line_at(place: str, test: TestResult, *, is_certain: bool) -> CallLine | None:
    """A place of a document as a line; None if it names none."""
    function, _, where = place.partition(", ")
    file, _, number = where.rpartition(":")
    if not (function and file and number.isdecimal()):
        return None
    text = test.lines.get(place, "")
    return CallLine(function=function, file=file, number=int(number), text=text, is_certain=is_certain)


def _function(place: str) -> str:
    """A place without the number of its line: the function and its file."""
    return place.rpartition(":")[0]


def _number(place: str) -> int:
    number = place.rpartition(":")[2]
    return int(number) if number.isdecimal() else 0


def _lines_by_function(test: TestResult) -> dict[str, list[_Line]]:
    """The lines of a test that call ops, in their order. The number stands for an unknown text."""
    found: defaultdict[str, list[_Line]] = defaultdict(list)
    for place in {place for row in test.ops for place in row.places}:
        number = _number(place)
        found[_function(place)].append(_Line(number, place, test.lines.get(place, str(number))))
    return {function: sorted(lines) for function, lines in sorted(found.items())}


def _aligned(before: Sequence[_Line], after: Sequence[_Line]) -> Iterator[tuple[str, str]]:
    """Pairs of places: lines that stayed, and lines that were edited."""
    texts, texts_after = ([line.text for line in lines] for lines in (before, after))
    matcher = SequenceMatcher(None, texts, texts_after, autojunk=False)
    for tag, low, high, low_after, high_after in matcher.get_opcodes():
        if tag == "equal":
            for old, new in zip(before[low:high], after[low_after:high_after], strict=True):
                yield old.place, new.place
        elif tag == "replace":
            yield from _edited(before[low:high], after[low_after:high_after])


def _edited(before: Sequence[_Line], after: Sequence[_Line]) -> Iterator[tuple[str, str]]:
    """Pairs of replaced lines and similar new lines, in order: the likest first.

    Lines that compute the same come first, and then lines that bind the same name.
    """
    alike = [
        (_value(new.text) == _value(old.text), _bound(new.text) == _bound(old.text) != "", likeness, -at, -to)
        for at, old in enumerate(before)
        for to, new in enumerate(after)
        if (likeness := _likeness(old.text, new.text)) >= _SIMILAR
    ]
    pairs: list[tuple[int, int]] = []
    for *_, at, to in sorted(alike, reverse=True):
        if all((one < -at and other < -to) or (one > -at and other > -to) for one, other in pairs):
            pairs.append((-at, -to))
            yield before[-at].place, after[-to].place


@lru_cache(maxsize=100_000)
def _likeness(old: str, new: str) -> float:
    return SequenceMatcher(None, old, new).ratio()


def _bound(text: str) -> str:
    """What a line assigns to; empty for nothing."""
    return text.partition(" = ")[0] if " = " in text else ""


def _value(text: str) -> str:
    """What a line assigns or returns."""
    return text.partition(" = ")[2] or text.removeprefix("return ")


def _own_name(function: str) -> str:
    """``forward, model.py`` of ``Model.forward, model.py``; a function inside another one keeps all of it."""
    name, _, file = function.rpartition(", ")
    return function if "<" in name else f"{name.rpartition('.')[2]}, {file}"
