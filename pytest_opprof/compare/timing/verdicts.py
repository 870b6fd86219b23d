"""The rounds of an A/B: the base against itself, base against head, and again with fresh processes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_opprof.compare.timing.comparison import FALSE_DISCOVERIES, Control, Direction, Sides, TimeSettings
from pytest_opprof.compare.timing.samples import Refusal
from pytest_opprof.compare.timing.significance import (
    combined_p,
    discoveries,
    p_of_rise_of_fast,
    processes_needed,
    smallest_p,
)
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.units import EVERY_PPM, Unit, format_change, format_quantity

# A base that differs from itself stops everything, so it needs more evidence.
_CONTROL_FALSE_DISCOVERIES = 0.01
_CONFIRMED_BELOW = 0.01
# A, B, B, A: a drift while the processes run affects both halves alike.
_ROUND = 4
_OUTER = frozenset({0, 3})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The first round's finding on a test whose quartiles differ by enough."""

    direction: Direction
    is_significant: bool  # its sides differ significantly, corrected for the number of tests


def noise_of(timed: Mapping[str, Sides]) -> dict[str, int]:
    """By what share each test's base differs between its halves; tests with one process are left out."""
    return {
        node_id: _halves(sides.base_ns).distance_ppm
        for node_id, sides in timed.items()
        if len(sides.base_ns) > 1
    }


def control_of(timed: Mapping[str, Sides], *, settings: TimeSettings) -> tuple[Control, Mapping[str, int]]:
    """Judge the base against itself; with it, for each test, by what share its base's halves differ."""
    noise = noise_of(timed)
    if not noise:
        return Control(), noise
    halves = {node_id: _halves(timed[node_id].base_ns) for node_id in noise}
    p_values = [p for half in halves.values() for p in (p_of(half, each) for each in Direction)]
    found = discoveries(p_values, rate=_CONTROL_FALSE_DISCOVERIES)
    flagged = tuple(
        node_id
        for at, node_id in enumerate(halves)
        if any(found[2 * at : 2 * at + 2]) and noise[node_id] > settings.min_effect * EVERY_PPM
    )
    noisiest = max(noise, key=lambda node_id: noise[node_id])
    return Control(noise_ppm=noise[noisiest], noisiest=noisiest, flagged=flagged), noise


def control_needs(timed: Iterable[Sides]) -> int:
    """How many tests must differ from themselves for the control to flag one.

    With too few processes it is more tests than there are.
    """
    halves = [_halves(sides.base_ns) for sides in timed]
    smallest = min((smallest_p(len(half.base_ns), len(half.head_ns)) for half in halves), default=0.0)
    return math.ceil(smallest * len(halves) * len(Direction) / _CONTROL_FALSE_DISCOVERIES)


def first_round(
    timed: Mapping[str, Sides], *, noise: Mapping[str, int], settings: TimeSettings
) -> Mapping[str, Finding]:
    """The tests that changed by more than `min_effect` and more than their noise.

    Significance is not needed: processes that met a slow machine may hide a change, so such a test gets a
    second look too.
    """
    significant = {
        direction: discoveries([p_of(sides, direction) for sides in timed.values()], rate=FALSE_DISCOVERIES)
        for direction in Direction
    }
    return {
        node_id: Finding(direction=direction, is_significant=significant[direction][at])
        for at, (node_id, sides) in enumerate(timed.items())
        if (direction := sides.direction) is not None
        and sides.distance_ppm > max(round(settings.min_effect * EVERY_PPM), noise.get(node_id, 0))
    }


def confirmed_below(findings: Mapping[str, Finding], finding: Finding) -> float:
    """The p that fresh processes must stay below.

    For a significant change they answer one question. Without significance there are as many questions as
    such tests, and chance would answer some: Bonferroni's bound keeps that to one A/B in a hundred.
    """
    if finding.is_significant:
        return _CONFIRMED_BELOW
    return _CONFIRMED_BELOW / sum(not each.is_significant for each in findings.values())


def too_few(sides: Sides, *, tests: int, settings: TimeSettings) -> str:
    """Why so many processes cannot tell one of so many tests from chance; empty if they can."""
    base, head = len(sides.base_ns), len(sides.head_ns)
    needed = max(settings.least_processes, processes_needed(tests, rate=FALSE_DISCOVERIES))
    if min(base, head) >= settings.least_processes and smallest_p(base, head) <= FALSE_DISCOVERIES / tests:
        return ""
    among = f" for {tests} tests" if tests > 1 else ""
    return f"needs n >= {needed} processes a side{among}: {base} measured the base, {head} the head"


def too_noisy(noise_ppm: int, *, settings: TimeSettings) -> str:
    """Why a test that differs from itself is not judged; empty if it is quiet enough."""
    if noise_ppm <= settings.max_noise * EVERY_PPM:
        return ""
    noise, most = (_percent(ppm) for ppm in (noise_ppm, round(settings.max_noise * EVERY_PPM)))
    return f"its base differs from itself by {noise}, over the limit of {most}: is the machine busy?"


def verdict_on(
    sides: Sides,
    finding: Finding,
    *,
    confirmation: Sides | Refusal | None,
    below: float,
    settings: TimeSettings,
) -> tuple[Verdict, str]:
    """The verdict on a test that the first round found, and its reason.

    Fresh processes must agree: significantly (`confirmed_below`), and by more than `min_effect`, because the
    first round was chosen for its change. If they show no such change, and could have, the first round met a
    bad moment. In between it is INCONCLUSIVE; but a test that may be faster never fails.
    """
    direction = finding.direction
    first = f"{_told(sides, direction)} in {_processes(sides)} (p = {p_of(sides, direction):.2g})"
    unknown = Verdict.INCONCLUSIVE if direction is Direction.SLOWER else Verdict.PASS
    if confirmation is None:
        return unknown, f"{first}, and not confirmed by fresh processes"
    if isinstance(confirmation, Refusal):
        return unknown, f"{first}, and not confirmed: {confirmation.reason}"
    base, head = len(confirmation.base_ns), len(confirmation.head_ns)
    if smallest_p(base, head) >= below:
        needed = processes_needed(1, rate=below)
        return unknown, f"{first}, and not confirmed: that needs n >= {needed} fresh processes a side"
    p = p_of(confirmation, direction)
    change = format_change(confirmation.change_ppm, unit=Unit.PPM)
    again = f"{_processes(confirmation, word='more')} ({change}, p = {p:.2g})"
    if p < below:
        if not _is_seen(confirmation, direction, settings=settings):
            return Verdict.PASS, f"{first}, but below --min-effect in {again}"
        found = Verdict.REGRESSED if direction is Direction.SLOWER else Verdict.IMPROVED
        return found, f"{first}, confirmed in {again}"
    judge = _unconfirmed if finding.is_significant else _doubtful
    verdict, then = judge(sides, confirmation, direction, again=again, settings=settings)
    return unknown if verdict is Verdict.INCONCLUSIVE else verdict, f"{first}{then}"


def _unconfirmed(
    first: Sides, second: Sides, direction: Direction, *, again: str, settings: TimeSettings
) -> tuple[Verdict, str]:
    """The verdict if only the first round was significant, and the sentence's end."""
    if _is_seen(second, direction, settings=settings):
        return Verdict.INCONCLUSIVE, f", and not certain in {again}"
    noise_ppm = _halves(second.base_ns).distance_ppm
    if noise_ppm >= first.distance_ppm:
        noise = _percent(noise_ppm)
        return Verdict.INCONCLUSIVE, f", and not seen in {again}, whose base differs from itself by {noise}"
    return Verdict.PASS, f", and gone in {again}"


def _doubtful(
    first: Sides, second: Sides, direction: Direction, *, again: str, settings: TimeSettings
) -> tuple[Verdict, str]:
    """The same if neither round was significant: both together decide."""
    if not _is_seen(second, direction, settings=settings):
        return Verdict.PASS, f", and gone in {again}"
    if combined_p((p_of(first, direction), p_of(second, direction))) < FALSE_DISCOVERIES:
        return Verdict.INCONCLUSIVE, f"; in {again}: not certain"
    return Verdict.PASS, f"; in {again}: within noise"


def _is_seen(sides: Sides, direction: Direction, *, settings: TimeSettings) -> bool:
    return sides.direction is direction and sides.distance_ppm > settings.min_effect * EVERY_PPM


def _halves(base_ns: Sequence[int]) -> Sides:
    outer = tuple(time for at, time in enumerate(base_ns) if at % _ROUND in _OUTER)
    inner = tuple(time for at, time in enumerate(base_ns) if at % _ROUND not in _OUTER)
    return Sides(base_ns=outer, head_ns=inner)


def p_of(sides: Sides, direction: Direction) -> float:
    """How likely equal sides are so far apart, in this direction."""
    if direction is Direction.SLOWER:
        return p_of_rise_of_fast(sides.base_ns, sides.head_ns)
    return p_of_rise_of_fast(sides.head_ns, sides.base_ns)


def _percent(ppm: int) -> str:
    return format_quantity(ppm, unit=Unit.PPM)


def _told(sides: Sides, direction: Direction) -> str:
    return f"{direction} by {_percent(abs(sides.change_ppm))}"


def _processes(sides: Sides, *, word: str = "processes") -> str:
    base, head = len(sides.base_ns), len(sides.head_ns)
    return f"{base} {word} a side" if base == head else f"{base} and {head} {word}"
