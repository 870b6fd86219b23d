"""The rounds of an A/B: the base against itself, base against head, and once more with fresh processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_opprof.compare.significance import discoveries, p_of_rise, processes_needed, smallest_p
from pytest_opprof.compare.time_comparison import (
    CONFIRMED_BELOW,
    CONTROL_FALSE_DISCOVERIES,
    FALSE_DISCOVERIES,
    Control,
    Direction,
    Sides,
)
from pytest_opprof.compare.time_samples import Refusal
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.units import EVERY_PPM, Unit, format_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_opprof.compare.time_comparison import TimeSettings

# A, B, B, A: what drifts while the processes run meets both halves alike.
_ROUND = 4
_OUTER = frozenset({0, 3})


def control_of(timed: Mapping[str, Sides], *, settings: TimeSettings) -> tuple[Control, Mapping[str, int]]:
    """Judge the base against itself.

    Args:
        timed: the tests with times on both sides.
        settings: what counts as slower.

    Returns:
        The control, and for each test by what share its base's halves differ.
    """
    halves = {node_id: _halves(sides.base_ns) for node_id, sides in timed.items() if len(sides.base_ns) > 1}
    noise = {node_id: half.distance_ppm for node_id, half in halves.items()}
    if not noise:
        return Control(), noise
    p_values = [p for half in halves.values() for p in (_p(half, each) for each in Direction)]
    found = discoveries(p_values, rate=CONTROL_FALSE_DISCOVERIES)
    flagged = tuple(
        node_id
        for at, node_id in enumerate(halves)
        if any(found[2 * at : 2 * at + 2]) and noise[node_id] > settings.min_effect * EVERY_PPM
    )
    noisiest = max(noise, key=lambda node_id: noise[node_id])
    return Control(noise_ppm=noise[noisiest], noisiest=noisiest, flagged=flagged), noise


def first_round(
    timed: Mapping[str, Sides], *, noise: Mapping[str, int], settings: TimeSettings
) -> Mapping[str, Direction]:
    """The tests that went one way: clearly, in spite of how many there are, and by more than their noise."""
    flagged = {}
    for direction in Direction:
        found = discoveries([_p(sides, direction) for sides in timed.values()], rate=FALSE_DISCOVERIES)
        for (node_id, sides), is_found in zip(timed.items(), found, strict=True):
            least_ppm = max(round(settings.min_effect * EVERY_PPM), noise.get(node_id, 0))
            if is_found and sides.direction is direction and sides.distance_ppm > least_ppm:
                flagged[node_id] = direction
    return flagged


def too_few(sides: Sides, *, tests: int, settings: TimeSettings) -> str:
    """Why so many processes cannot tell one of so many tests from chance; empty where they can."""
    base, head = len(sides.base_ns), len(sides.head_ns)
    needed = max(settings.least_processes, processes_needed(tests, rate=FALSE_DISCOVERIES))
    if min(base, head) >= settings.least_processes and smallest_p(base, head) <= FALSE_DISCOVERIES / tests:
        return ""
    among = f" for {tests} tests" if tests > 1 else ""
    return f"needs n >= {needed} processes a side{among}: {base} measured the base, {head} the head"


def too_noisy(noise_ppm: int, *, settings: TimeSettings) -> str:
    """Why a test that differs from itself is not judged; empty for one that is quiet enough."""
    if noise_ppm <= settings.max_noise * EVERY_PPM:
        return ""
    noise, most = (_percent(ppm) for ppm in (noise_ppm, round(settings.max_noise * EVERY_PPM)))
    return f"its base differs from itself by {noise}, and {most} is the most: is the machine busy?"


def verdict_on(
    sides: Sides, direction: Direction, *, confirmation: Sides | Refusal | None, settings: TimeSettings
) -> tuple[Verdict, str]:
    """The verdict on a test that the first round flagged, and its reason.

    Fresh processes must say the same (p below 0.01, same way). Where they show no such change, and could
    have, the first round met a bad moment. In between nobody knows; but nothing that may have become faster
    fails.
    """
    first = f"{_told(sides, direction)} in {_processes(sides)} (p = {_p(sides, direction):.2g})"
    unknown = Verdict.INCONCLUSIVE if direction is Direction.SLOWER else Verdict.PASS
    if confirmation is None:
        return unknown, f"{first}, and not confirmed by fresh processes"
    if isinstance(confirmation, Refusal):
        return unknown, f"{first}, and not confirmed: {confirmation.reason}"
    verdict, then = _confirmed(confirmation, direction, first=sides, settings=settings)
    return unknown if verdict is Verdict.INCONCLUSIVE else verdict, f"{first}{then}"


def _confirmed(
    again: Sides, direction: Direction, *, first: Sides, settings: TimeSettings
) -> tuple[Verdict, str]:
    """What fresh processes say of a change, and how the sentence about the first ones goes on."""
    base, head = len(again.base_ns), len(again.head_ns)
    if smallest_p(base, head) >= CONFIRMED_BELOW:
        needed = processes_needed(1, rate=CONFIRMED_BELOW)
        return Verdict.INCONCLUSIVE, f", and not confirmed: that needs n >= {needed} fresh processes a side"
    p = _p(again, direction)
    where = f"{_processes(again, word='more')} (p = {p:.2g})"
    if p < CONFIRMED_BELOW:
        found = Verdict.REGRESSED if direction is Direction.SLOWER else Verdict.IMPROVED
        return found, f", confirmed in {where}"
    if again.direction is direction and again.distance_ppm > settings.min_effect * EVERY_PPM:
        return Verdict.INCONCLUSIVE, f"; {_told(again, direction)} and not sure in {where}"
    noise_ppm = _halves(again.base_ns).distance_ppm
    if noise_ppm >= first.distance_ppm:
        noise = _percent(noise_ppm)
        return Verdict.INCONCLUSIVE, f", and not seen in {where}, whose base differs from itself by {noise}"
    return Verdict.PASS, f", and gone in {where}"


def _halves(base_ns: Sequence[int]) -> Sides:
    outer = tuple(time for at, time in enumerate(base_ns) if at % _ROUND in _OUTER)
    inner = tuple(time for at, time in enumerate(base_ns) if at % _ROUND not in _OUTER)
    return Sides(base_ns=outer, head_ns=inner)


def _p(sides: Sides, direction: Direction) -> float:
    if direction is Direction.SLOWER:
        return p_of_rise(sides.base_ns, sides.head_ns)
    return p_of_rise(sides.head_ns, sides.base_ns)


def _percent(ppm: int) -> str:
    return format_quantity(ppm, unit=Unit.PPM)


def _told(sides: Sides, direction: Direction) -> str:
    return f"{direction} by {_percent(abs(sides.change_ppm))}"


def _processes(sides: Sides, *, word: str = "processes") -> str:
    base, head = len(sides.base_ns), len(sides.head_ns)
    return f"{base} {word} a side" if base == head else f"{base} and {head} {word}"
