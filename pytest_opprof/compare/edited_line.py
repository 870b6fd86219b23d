"""The edited line that makes another line run more often."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_opprof.baselines.deciding_names import OWN
from pytest_opprof.baselines.edited_file import UNKNOWN, EditedFile
from pytest_opprof.compare.call_sites import CallSites, line_at
from pytest_opprof.compare.comparison import CallLine
from pytest_opprof.metrics import PYTHON_INSTRUCTIONS
from pytest_opprof.results.run import TestResult

# What makes an object ready: how many layers it has is said there, and not where they are called.
_MAKING = ("__init__", "__post_init__")


def edit_behind(
    line: CallLine,
    sites: CallSites,
    edited: Mapping[str, EditedFile],
    *,
    caller_of: Callable[[CallLine], CallLine | None] = lambda _: None,
    calls_more: bool = True,
) -> CallLine:
    """The line itself, or the edited one that makes it run more often: that of `caller_of` first.

    In a loop, branch or function with an edited head, it is the head.

    If it does not call more ops, it calls others: then it is an edit that gives it something else. A line
    that was only rewritten has another cause if an edit decides how often it runs.
    """
    numbers = edited.get(line.file, ())
    is_edited = sites.is_edited(line, numbers)
    is_of_callers = sites.is_of_callers(line, numbers)
    cause = None
    if not is_edited or is_of_callers:
        cause = caller_of(line) or edited_line(
            line, sites.sides[1], edited, is_of_callers=is_of_callers, calls_more=calls_more
        )
    elif line.number not in edited[line.file].changed:
        file = edited[line.file]
        head = file.head_around(line.number)
        cause = edit_at(line.function, line.file, head, file, is_certain=line.is_certain) if head else None
    elif sites.calls_as_before(line):
        cause = _decidingedit_at(line, edited, within=OWN)
    return cause or replace(line, is_edited=is_edited)


def edited_line(
    line: CallLine,
    head: TestResult,
    edited: Mapping[str, EditedFile],
    *,
    is_of_callers: bool = False,
    calls_more: bool = True,
) -> CallLine | None:
    """The line to look at if an unedited line of `head` calls an op more often; None if nothing is known.

    It is the nearest edited line on the way to that line: a model that is called once more runs all of its
    ops more often. Else it is an edit that decides how often a line on the way runs, such as of a constant.
    Else it is an edit that runs before, in the nearest edited function on the way, such as of a number of
    steps. Else, or if that edit only binds what is not used there, it is the edit where the nearest class on
    the way is made. Else it is the only edit of all, if that is of a module's own statements or of a file
    that ran, or else the only one of what ran.

    If the whole function of the line runs more often (`is_of_callers`), edits of it come after those of
    functions on the way to it. If the line only calls other ops (not `calls_more`), edits of functions on the
    way count only if they bind what is used there. The found line is certain if no other is as near; of
    several on the way it is the busiest, or the edited head of what is around them.
    """
    ways = list(_ways(line, head))
    for near in ways[1:]:
        found = [one for one in near if one.number in edited.get(one.file, ())]
        if found:
            return _edited_way(found, edited, is_certain=line.is_certain)
    deciding = [one for near in ways[is_of_callers:] for one in near]
    if cause := next(filter(None, (_decidingedit_at(one, edited) for one in deciding)), None):
        return replace(cause, is_certain=cause.is_certain and line.is_certain)
    on_the_way = [*deciding, *(ways[0] if is_of_callers else ())]
    for one in on_the_way:
        if one.file in edited and (edit := _edit_in(one, edited[one.file])):
            may_decide = edited[one.file].distance(edit.number, one.number) < math.inf
            if not (may_decide or calls_more):
                continue
            cause = (None if may_decide else _edited_elsewhere(on_the_way, edited, head)) or edit
            return replace(cause, is_certain=cause.is_certain and line.is_certain)
    return _edited_elsewhere(on_the_way, edited, head) if head.callers else None


def _edited_way(found: Sequence[CallLine], edited: Mapping[str, EditedFile], *, is_certain: bool) -> CallLine:
    """One of several edited lines that are as near; of unedited ones the edited head of what they are in."""
    first = found[0]
    file = edited[first.file]
    head = 0 if first.number in file.changed else file.head_around(first.number)
    if head:
        is_one = all(
            one.file == first.file and one.number not in file.changed and file.head_around(one.number) == head
            for one in found
        )
        return edit_at(first.function, first.file, head, file, is_certain=is_certain and is_one)
    return replace(first, is_edited=True, is_certain=is_certain and len(found) == 1)


def _ways(line: CallLine, head: TestResult) -> Iterator[list[CallLine]]:
    """The line, then the lines that call its function, and so on outwards."""
    near, seen = [line.place], {line.place}
    while near:
        lines = (line_at(place, head, is_certain=line.is_certain) for place in near)
        yield [one for one in lines if one is not None]
        callers = (caller for place in near for caller in head.callers.get(place, ()))
        near = list(dict.fromkeys(caller for caller in callers if caller not in seen))
        seen.update(near)


def _decidingedit_at(
    line: CallLine, edited: Mapping[str, EditedFile], *, within: float = UNKNOWN
) -> CallLine | None:
    """The edit that decides how often a line runs: of what its loops and branches depend on."""
    if line.file not in edited:
        return None
    own = edited[line.file]
    found = [
        (distance, -number, line.function, line.file)
        for number in _edits_before(line, own)
        if (distance := own.distance(number, line.number)) < within
    ]
    found += [
        (distance + (file != line.file), -number, "", file)
        for file, one in edited.items()
        for distance, number in one.constants(own, line.number)
    ]
    if not found or min(found)[0] >= within:
        return None
    nearest, number, function, file = min(found)
    is_certain = sum(distance == nearest for distance, *_ in found) == 1
    return edit_at(function, file, -number, edited[file], is_certain=is_certain)


def _edits_before(line: CallLine, edited: EditedFile) -> list[int]:
    """The edits of the function that a line is in, which run before the line."""
    return [
        number
        for function, number in edited.places
        if function == line.function
        if number < line.number or edited.share_a_loop(number, line.number)
    ]


def _edit_in(line: CallLine, edited: EditedFile) -> CallLine | None:
    """An edit of the function that a line is in: the last one that runs before the line."""
    above = _edits_before(line, edited)
    if not above:
        return line if line.function in edited.cut else None
    return edit_at(line.function, line.file, above[-1], edited, is_certain=len(above) == 1)


def _edited_elsewhere(
    lines: list[CallLine], edited: Mapping[str, EditedFile], head: TestResult
) -> CallLine | None:
    classes = dict.fromkeys((one.function.rpartition(".")[0], one.file) for one in lines)
    makers = [(f"{name}.{method}", file) for name, file in classes for method in _MAKING]
    # What is new runs only if edited code calls it. What is gone has no line.
    places = [
        (function, file, number)
        for file, one in edited.items()
        for function, number in one.places
        if function not in one.new
    ]
    known = {place[:2] for place in places}
    gone = {(function, file) for file, one in edited.items() for function in one.cut | one.decorated} - known
    near = sorted((one for one in places if one[:2] in makers), key=lambda one: makers.index(one[:2]))
    is_certain = len(near) == 1
    if not near:
        is_certain = len(places) == 1 and not gone
        # What only made ready what is called may be the cause too, but seldom is.
        near = [place for place in places if is_certain or _ran(place[:2], head)]
        is_possible = len(near) == 1 and not any(_ran(place, head) for place in gone)
        if not is_possible or near[0][:2] in {(one.function, one.file) for one in lines}:
            return None
        if is_certain and near[0][0] and near[0][1] not in {one.file for one in lines}:
            return None
    function, file, number = near[0]
    if not file.endswith(".py"):
        return None
    return edit_at(function, file, number, edited[file], is_certain=is_certain)


def _ran(place: tuple[str, str], head: TestResult) -> bool:
    """Whether an edit is of a function that a step ran, or of the module of one."""
    function, file = place
    functions = head.functions.get(PYTHON_INSTRUCTIONS.name, {})
    if function:
        return f"{function}, {file}" in functions
    return any(one.rpartition(", ")[2] == file for one in functions)


def edit_at(
    function: str, file: str, number: int, edited: EditedFile, *, is_certain: bool = True
) -> CallLine:
    """An edited line of a file as a line to look at."""
    return CallLine(
        function=function or "<module>",
        file=file,
        number=number,
        text=edited.text_of(number),
        is_certain=is_certain,
        is_edited=True,
    )
