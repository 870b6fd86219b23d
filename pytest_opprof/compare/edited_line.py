"""The edited line that makes another line run more often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pytest_opprof.baselines.edited_file import EditedFile
from pytest_opprof.compare.call_sites import line_at
from pytest_opprof.compare.comparison import CallLine
from pytest_opprof.results.run import TestResult

# What makes an object ready: how many layers it has is said there, and not where they are called.
_MAKING = ("__init__", "__post_init__")


def edited_line(
    line: CallLine, head: TestResult, edited: Mapping[str, EditedFile], *, is_of_callers: bool = False
) -> CallLine | None:
    """The line to look at if an unedited line of `head` calls an op more often; None if nothing is known.

    It is the nearest edited line on the way to that line: a model that is called once more runs all of its
    ops more often. Else it is an edit that runs before, in the nearest edited function on the way, such as of
    a number of steps. Else, or if that edit only binds what is not used there, it is the edit where a class
    on the way is made. Else it is the only edit of all, if that is of a module's own statements or of a file
    that ran.

    If the whole function of the line runs more often (`is_of_callers`), edits of it come after those of
    functions on the way to it. The line is certain if no other is as near; of several on the way it is the
    busiest.
    """
    ways = list(_ways(line, head))
    for near in ways[1:]:
        found = [one for one in near if one.number in edited.get(one.file, ())]
        if found:
            return replace(found[0], is_edited=True, is_certain=line.is_certain and len(found) == 1)
    if is_of_callers:
        ways = [*ways[1:], ways[0]]
    on_the_way = [one for near in ways for one in near]
    for one in on_the_way:
        if one.file in edited and (edit := _edit_in(one, edited[one.file])):
            feeds = edited[one.file].feeds(edit.number, one.number)
            cause = (None if feeds else _edited_elsewhere(on_the_way, edited)) or edit
            return replace(cause, is_certain=cause.is_certain and line.is_certain)
    return _edited_elsewhere(on_the_way, edited) if head.callers else None


def _ways(line: CallLine, head: TestResult) -> Iterator[list[CallLine]]:
    """The line, then the lines that call its function, and so on outwards."""
    near, seen = [line.place], {line.place}
    while near:
        lines = (line_at(place, head, is_certain=line.is_certain) for place in near)
        yield [one for one in lines if one is not None]
        callers = (caller for place in near for caller in head.callers.get(place, ()))
        near = list(dict.fromkeys(caller for caller in callers if caller not in seen))
        seen.update(near)


def _edit_in(line: CallLine, edited: EditedFile) -> CallLine | None:
    """An edit of the function that a line is in: the last one that runs before the line."""
    above = [
        number
        for function, number in edited.places
        if function == line.function
        if number < line.number or edited.share_a_loop(number, line.number)
    ]
    if not above:
        return line if line.function in edited.cut else None
    return _edit(line.function, line.file, above[-1], edited, is_certain=len(above) == 1)


def _edited_elsewhere(lines: list[CallLine], edited: Mapping[str, EditedFile]) -> CallLine | None:
    ran = {one.file for one in lines}
    makers = {(f"{one.function.rpartition('.')[0]}.{name}", one.file) for one in lines for name in _MAKING}
    # What is new runs only if edited code calls it. What is gone has no line.
    places = [
        (function, file, number)
        for file, one in edited.items()
        for function, number in one.places
        if function not in one.new
    ]
    gone = sum(
        len((one.cut | one.decorated) - {function for function, *_ in places}) for one in edited.values()
    )
    near = [place for place in places if place[:2] in makers]
    if not near and not gone:
        on_the_way = {(one.function, one.file) for one in lines}
        is_possible = len(places) == 1 and places[0][:2] not in on_the_way
        near = [place for place in places if is_possible and (not place[0] or place[1] in ran)]
    if len({place[:2] for place in near}) != 1:
        return None
    function, file, number = near[0]
    is_certain = len(near) == 1
    return (
        _edit(function, file, number, edited[file], is_certain=is_certain) if file.endswith(".py") else None
    )


def _edit(function: str, file: str, number: int, edited: EditedFile, *, is_certain: bool) -> CallLine:
    return CallLine(
        function=function or "<module>",
        file=file,
        number=number,
        text=edited.text_of(number),
        is_certain=is_certain,
        is_edited=True,
    )
