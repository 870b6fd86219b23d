"""In which functions a total rose: of instructions, and of what torch.compile did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

from pytest_opprof.compare.comparison import CallLine, Change
from pytest_opprof.metrics import LIBRARY_INSTRUCTIONS, PYTHON_INSTRUCTIONS, Metric, Source
from pytest_opprof.results.run import TestResult
from pytest_opprof.units import format_change
from pytest_opprof.wording import listed

_first_few = partial(listed, most=3, separator="; ", last="; ")


def with_grown_functions(
    change: Change,
    base: TestResult,
    head: TestResult,
    *,
    regressed: Collection[str],
    edited: Collection[str] = (),
) -> Change:
    """A total that rose with the function that grew most as its line, and the first few in words.

    A function is found again in another file, and by what it runs under another name. What libraries run
    more has the line of the project's own function that grew with it, if one did.

    Args:
        regressed: The totals that regressed before it: what they say is not said again.
        edited: The files that were edited since the base's commit. What grew most in these comes first, as
            functions in other files run more only where something calls them more often.
    """
    risen = _risen(change.metric, base, head, edited)
    if change.rise <= 0 or not risen:
        return change
    told = _first_few([_in_words(item, change.about) for item in risen])
    is_of_libraries = change.metric == LIBRARY_INSTRUCTIONS.name
    own = _risen(PYTHON_INSTRUCTIONS.name, base, head, edited) if is_of_libraries else []
    if own and PYTHON_INSTRUCTIONS.name not in regressed:
        told += f"; {PYTHON_INSTRUCTIONS.label} in {_in_words(own[0], PYTHON_INSTRUCTIONS)}"
    first, _ = (own or risen)[0]
    function, _, file = first.rpartition(", ")
    return replace(change, line=CallLine(function=function, file=file, number=0), cause=f"in {told}")


def _in_words(risen: tuple[str, int], of: Metric) -> str:
    name, rise = risen
    return f"{name} ({format_change(rise, unit=of.unit)})"


def with_reasons(change: Change, base: TestResult, head: TestResult) -> Change:
    """A total of torch.compile's that rose, with functions, their files, and torch's words for why."""
    before, after = (Counter(side.functions.get(change.metric, {})) for side in (base, head))
    risen = after - before
    if change.rise <= 0 or not risen:
        return change
    first = min(risen, key=lambda reason: (-risen[reason], reason))
    function, _, file = first.partition(": ")[0].rpartition(", ")
    line = CallLine(function=function, file=file, number=0) if function else None
    return replace(change, line=line, cause=f"in {in_words(risen, of=change.about)}")


def in_words(counts: Mapping[str, int], *, of: Metric) -> str:
    """The first few that a total consists of: ``forward, model.py: tensor 'x' dtype mismatch (2 times)``."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    # How often a function was compiled says something; the growth of an exponent's functions is in it.
    is_repeated = of.source is Source.COMPILE
    return _first_few([f"{name} ({n} times)" if is_repeated and n > 1 else name for name, n in ranked])


def _risen(
    metric: str, base_test: TestResult, head_test: TestResult, edited: Collection[str]
) -> list[tuple[str, int]]:
    """The functions that run more, by how much: of edited files first. One of the same name only moved."""
    before, after = (test.functions.get(metric, {}) for test in (base_test, head_test))
    base, head = _by_function(before), _by_function(after)
    gone = Counter(count for function, count in base.items() if function not in head)
    risen: dict[str, int] = {}
    places = sorted(after, key=lambda name: (before.get(name, 0) - after[name], name))
    for name in places:
        function = name.rpartition(", ")[0]
        rise = head[function] - base[function]
        if rise <= 0 or any(name.rpartition(", ")[0] == function for name in risen):
            continue
        if function not in base and gone[head[function]]:
            gone[head[function]] -= 1  # it has another name now
            continue
        risen[name] = rise
    return sorted(
        risen.items(), key=lambda item: (item[0].rpartition(", ")[2] not in edited, -item[1], item[0])
    )


def _by_function(counts: Mapping[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in counts.items():
        found[name.rpartition(", ")[0]] += count
    return found
