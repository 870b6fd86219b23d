"""The functions in which a total of instructions or of torch.compile rose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from pytest_opprof.baselines.edited_file import EditedFile
from pytest_opprof.compare.comparison import CallLine, Change
from pytest_opprof.compare.grown_line import GrownLines
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import LIBRARY_INSTRUCTIONS, PYTHON_INSTRUCTIONS, Metric, Source
from pytest_opprof.results.build import MAX_FUNCTIONS
from pytest_opprof.results.run import TestResult
from pytest_opprof.units import format_change
from pytest_opprof.wording import listed

# Of two counts that are so near to each other, one may have taken the place of the other.
_NEAR = 0.8
_FAR_MORE = 2
_FEWER_FUNCTIONS = 200  # kept by older releases
# What is less than one in so many of a total's rise is a coincidence of names rather than its cause.
_PARTS = 10
_INSTRUCTIONS = frozenset({PYTHON_INSTRUCTIONS.name, LIBRARY_INSTRUCTIONS.name})
_first_few = partial(listed, most=3, separator="; ", last="; ")


def with_grown_functions(
    change: Change,
    base: TestResult,
    head: TestResult,
    *,
    regressed: Collection[str],
    grown: GrownLines | None = None,
    edited: Mapping[str, EditedFile] = MappingProxyType({}),
) -> Change:
    """The total with the function that grew most as its line, and the first few in words.

    A moved function is found in its new file, a renamed one by what it runs. If both sides know the calls of
    functions, the line is what makes them run more (see `GrownLines`). Else, if libraries run more, or a
    function that was not edited, the line is that of the function whose edited lines call it by name. If none
    does, and libraries run more, it is that of the project's own function that grew with them, if one did.

    What the totals in `regressed` say is not said again. Of what grew, edited functions come first, and other
    functions of edited files next: others run more only because something calls them more.
    """
    if change.rise <= 0:
        return change
    grown = grown or GrownLines(base, head, edited)
    risen = _risen(change.metric, base, head, edited, older=grown.older)
    if not risen:
        return change
    own = []
    if change.metric == LIBRARY_INSTRUCTIONS.name:
        own = _risen(PYTHON_INSTRUCTIONS.name, base, head, edited, older=grown.older)
    if change.metric in _INSTRUCTIONS and base.calls and head.calls:
        # What grew by less than a tenth of a total did not make it grow, if anything else may have.
        large = [item for item in own if _PARTS * item[1] >= change.rise]
        line = (
            grown.line_of(large, PYTHON_INSTRUCTIONS.name)
            or grown.line_of(risen, change.metric)
            or grown.line_of(own, PYTHON_INSTRUCTIONS.name)
        )
        if line is not None:
            largest = sorted(risen, key=lambda item: (-item[1], item[0]))
            return replace(change, line=line, cause=f"in {_in_few_words(largest, change.about)}")
    return _with_function(change, risen, own, head, regressed=regressed, edited=edited)


def _with_function(
    change: Change,
    risen: Sequence[tuple[str, int]],
    own: Sequence[tuple[str, int]],
    head: TestResult,
    *,
    regressed: Collection[str],
    edited: Mapping[str, EditedFile],
) -> Change:
    """As `with_grown_functions`, by the functions' names alone."""
    told = _in_few_words(risen, change.about)
    is_of_libraries = change.metric == LIBRARY_INSTRUCTIONS.name
    first, _ = (own or risen)[0]
    own_functions = head.functions.get(PYTHON_INSTRUCTIONS.name, {})
    ran = None if _is_cut(own_functions) else own_functions
    grown = {_written_in(place) for place, _ in (own or risen) if _distance(place, edited) == 0}
    caller = None
    if is_of_libraries:
        # Methods of libraries share names: an edited function that grew itself is likelier to be the caller.
        large = [item for item in risen if _PARTS * item[1] >= change.rise]
        caller = _edited_caller(large, edited, grown, grown) or _edited_caller(large, edited, ran, grown)
    if caller is None and _distance(first, edited):
        caller = _edited_caller([*own, *risen], edited, ran, grown)
    elif not is_of_libraries:
        # An edit that costs little elsewhere is not the cause.
        most = max(risen, key=lambda item: item[1])
        if most[1] > _FAR_MORE * risen[0][1] and _distance(most[0], edited):
            caller = _edited_caller([most], edited, ran, grown)
    if caller is not None and caller != _written_in(first):
        first = caller
        told += f"; called in {caller}"
    elif own and PYTHON_INSTRUCTIONS.name not in regressed:
        told += f"; {PYTHON_INSTRUCTIONS.label} in {_in_words(own[0], PYTHON_INSTRUCTIONS)}"
    function, _, file = first.rpartition(", ")
    return replace(change, line=CallLine(function=function, file=file, number=0), cause=f"in {told}")


def _in_few_words(risen: Sequence[tuple[str, int]], of: Metric) -> str:
    return _first_few([_in_words(item, of) for item in risen])


def _in_words(risen: tuple[str, int], of: Metric) -> str:
    name, rise = risen
    return f"{name} ({format_change(rise, unit=of.unit)})"


def with_lines_of_functions(changes: Sequence[Change]) -> tuple[Change, ...]:
    """The changes; instructions whose function alone is known have the line of another regression there."""
    lines = (change.line for change in reversed(changes) if change.verdict is Verdict.REGRESSED)
    known = {_function_of(line): line for line in lines if line and line.number}

    def with_line(change: Change) -> Change:
        line = change.line if change.op is None and change.verdict is Verdict.REGRESSED else None
        if line is None or line.number or not change.about.slack:
            return change
        return replace(change, line=known.get(_function_of(line), line))

    return tuple(map(with_line, changes)) if known else tuple(changes)


def _function_of(line: CallLine) -> str:
    return _written_in(f"{line.function}, {line.file}")


def with_reasons(change: Change, base: TestResult, head: TestResult) -> Change:
    """A rise of a torch.compile total, with functions, their files, and torch's reasons."""
    before, after = (Counter(side.functions.get(change.metric, {})) for side in (base, head))
    risen = after - before
    if change.rise <= 0 or not risen:
        return change
    first = min(risen, key=lambda reason: (-risen[reason], reason))
    function, _, file = first.partition(": ")[0].rpartition(", ")
    line = CallLine(function=function, file=file, number=0) if function else None
    return replace(change, line=line, cause=f"in {in_words(risen, of=change.about)}")


def in_words(counts: Mapping[str, int], *, of: Metric) -> str:
    """The first few parts of a total: ``forward, model.py: tensor 'x' dtype mismatch (2 times)``."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    # The number of compilations is shown; the functions of an exponent already show their growth.
    is_repeated = of.source is Source.COMPILE
    return _first_few([f"{name} ({n} times)" if is_repeated and n > 1 else name for name, n in ranked])


def _risen(
    metric: str,
    base_test: TestResult,
    head_test: TestResult,
    edited: Mapping[str, EditedFile],
    *,
    older: Mapping[str, str],
) -> list[tuple[str, int]]:
    """The functions that run more, by how much: edited ones first. One of the same name only moved.

    One that took the place of another one, or of a part of it, runs more by what it has more than that had.
    `older` has names of the base by those of the head, as far as its calls tell.
    """
    before, after = (test.functions.get(metric, {}) for test in (base_test, head_test))
    base, head = _by_function(before), _by_function(after)
    names = {new.rpartition(", ")[0]: old.rpartition(", ")[0] for new, old in older.items()}
    taken = _places_taken(base, head, names)
    # A full table may lack functions that have as much as the smallest that it kept.
    least = min(before.values()) if _is_cut(before) else 0
    risen: dict[str, int] = {}
    seen = set[str]()
    places = sorted(after, key=lambda name: (before.get(name, 0) - after[name], name))
    for name in places:
        function = name.rpartition(", ")[0]
        rise = head[function] - max(taken.get(function, 0), base.get(function, least))
        if rise > 0 and function not in seen:
            risen[name] = rise
            seen.add(function)
    return sorted(risen.items(), key=lambda item: (_distance(item[0], edited), -item[1], item[0]))


def _is_cut(functions: Mapping[str, int]) -> bool:
    """Whether more functions may have run."""
    return len(functions) in {MAX_FUNCTIONS, _FEWER_FUNCTIONS}


def _distance(place: str, edited: Mapping[str, EditedFile]) -> int:
    """0 for an edited function, 1 for another one of an edited file, and 2 for all others."""
    function, _, file = _written_in(place).rpartition(", ")
    if file not in edited:
        return 2
    return 0 if function in edited[file].functions else 1


def _written_in(place: str) -> str:
    """The function in which a comprehension or a lambda is written; any other one itself."""
    function, _, file = place.rpartition(", ")
    while (outer := function.rpartition(".<locals>."))[2].startswith("<"):
        function = outer[0]
    return f"{function}, {file}"


def _edited_caller(
    risen: Sequence[tuple[str, int]],
    edited: Mapping[str, EditedFile],
    ran: Collection[str] | None,
    grown: set[str],
) -> str | None:
    """The one function that ran and whose edited lines call, by name, the first of `risen` that is called so.

    A cache that was lost is such a case: the edited function itself may even run less. Of several callers,
    those in `grown`, which grew themselves, come first. `ran` is None if not all functions are known.
    """
    # As this test names them, which may be through a link.
    files = edited if ran is None else {place.rpartition(", ")[2] for place in ran}
    for place, _ in risen:
        called = _called_as(place)
        callers = {
            caller
            for file in files
            if file in edited
            for function in edited[file].callers.get(called, ())
            if (caller := f"{function}, {file}") and (ran is None or caller in ran)
        }
        callers = callers & grown or callers
        if callers:
            return callers.pop() if len(callers) == 1 else None
    return None


def _called_as(place: str) -> str:
    """The name by which a function is called: that of its class, if it makes one."""
    *classes, name = place.rpartition(", ")[0].partition(".<locals>.")[0].split(".")
    return classes[-1] if classes and name in {"__init__", "__new__"} else name


def _places_taken(base: Counter[str], head: Counter[str], older: Mapping[str, str]) -> dict[str, int]:
    """By new function: how much less another one runs, which was renamed, or which it was taken out of.

    Where calls do not tell the older name, this goes by counts: one runs less by about as much as the other
    one runs. A method whose class was renamed is known by its own name.
    """
    less = base - head
    taken = {
        new: less.pop(old) for new, old in older.items() if new in head and new not in base and old in less
    }
    pairs = []
    for new in head.keys() - base.keys():
        for old, fall in less.items():
            likeness = min(fall, head[new]) / max(fall, head[new])
            is_namesake = old not in head and _own_name(old) == _own_name(new)
            if is_namesake or likeness >= _NEAR:
                pairs.append((likeness < 1, not is_namesake, -likeness, new, old))
    for *_, new, old in sorted(pairs):
        if new not in taken and old in less:
            taken[new] = less.pop(old)
    return taken


def _own_name(function: str) -> str:
    """Without its class; that of a lambda or of a comprehension with what is around it."""
    name = function.rpartition(".")[2]
    return function if name.startswith("<") else name


def _by_function(counts: Mapping[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in counts.items():
        found[name.rpartition(", ")[0]] += count
    return found
