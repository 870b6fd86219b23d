"""The activities that a profiler records, by torch's names."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pytest_opprof.capture import cuda


class ProfilerActivity(enum.Enum):
    """A group of activities; the numbers are torch's."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5

    def __index__(self) -> int:
        return self.value

    __int__ = __index__


def kineto_available() -> bool:
    """Whether profiles have all that torch records with Kineto: always, because ours need no Kineto."""
    return True


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be recorded here: the CPU, and CUDA if torch or this process has it."""
    return {ProfilerActivity.CPU} | ({ProfilerActivity.CUDA} if cuda.is_available() else set())


def cuda_source(
    requested: Iterable[object] | None, activities: Collection[ProfilerActivity]
) -> frozenset[str]:
    """The collector's source of CUDA; empty if CUDA is not recorded. None does not ask for CUDA by name."""
    if ProfilerActivity.CUDA not in activities:
        return frozenset()
    # Without a driver, a warning has already said so.
    is_asked_for = requested is not None and cuda.has_driver()
    return frozenset({cuda.CUDA if is_asked_for else cuda.CUDA_IF_USED})


def parse_activities(requested: Iterable[object] | None) -> set[ProfilerActivity]:
    """Read the ``activities`` argument of a profiler; None means all that are supported.

    It has members of `ProfilerActivity` or of torch's enum of that name, or mappings from such a member to
    names of activity types. The `AssertionError` is torch's.
    """
    activities = supported_activities() if requested is None else _distinct(requested)
    if not activities:
        raise AssertionError("No valid profiler activities found")
    return activities


def activity_types(requested: Iterable[object]) -> dict[ProfilerActivity, set[str]]:
    """The names of activity types in the mappings of an ``activities`` argument, by activity."""
    named = (item.items() for item in requested if isinstance(item, Mapping))
    return {_activity(member): set(types) for items in named for member, types in items}


def device_in(activities: Collection[ProfilerActivity]) -> str | None:
    """The device that torch's profile names as its ``use_device``; None for the host alone."""
    order = ("CUDA", "XPU", "MTIA", "HPU", "PrivateUse1")
    return next((name.lower() for name in order if ProfilerActivity[name] in activities), None)


def without_or_with_cuda(
    requested: Iterable[object] | None, *, use_cuda: bool | None
) -> Iterable[object] | None:
    """Apply the deprecated ``use_cuda`` to the ``activities`` argument: True adds CUDA, False removes it."""
    if use_cuda is None:
        return requested
    message = "`use_cuda` is deprecated, use `activities` argument instead"
    warnings.warn(message, FutureWarning, stacklevel=3)
    activities = supported_activities() if requested is None else _distinct(requested)
    cuda = {ProfilerActivity.CUDA}
    return activities | cuda if use_cuda else activities - cuda


def warn_of_missing(activities: Collection[ProfilerActivity]) -> None:
    """Name, in one warning, the requested activities that cannot be recorded here."""
    missing = set(activities) - supported_activities()
    if cuda.has_driver():
        missing.discard(ProfilerActivity.CUDA)  # it may be started later; each window says what it lacks
    devices = sorted(activity.name for activity in missing)
    if devices:
        warnings.warn(
            f"{' and '.join(devices)} activity is not available here: the results will not include it",
            stacklevel=4,
        )


def toggled_here(requested: Iterable[object]) -> frozenset[ProfilerActivity]:
    """The activities to switch; a warning names those that cannot be recorded here."""
    activities = parse_activities(requested)
    warn_of_missing(activities)
    return frozenset(activities)


def _distinct(requested: Iterable[object]) -> set[ProfilerActivity]:
    activities: set[ProfilerActivity] = set()
    for item in requested:
        if isinstance(item, Mapping):
            _warn_of_types(item)
        for member in item if isinstance(item, Mapping) else (item,):
            activity = _activity(member)
            if activity in activities:
                raise ValueError(f"activity {activity.name} is given more than once; name it once")
            activities.add(activity)
    return activities


def _activity(member: object) -> ProfilerActivity:
    if isinstance(member, ProfilerActivity):
        return member
    # Torch's enum is made by pybind11 and is not an enum.Enum: recognize its members by their type's name.
    name = getattr(member, "name", None)
    if type(member).__name__ == ProfilerActivity.__name__ and isinstance(name, str):
        activity = ProfilerActivity.__members__.get(name)
        if activity is not None:
            return activity
    raise TypeError(f"activities must hold ProfilerActivity members or dicts of them, not {member!r}")


def _warn_of_types(chosen: Mapping[Any, Any]) -> None:
    names = ", ".join(sorted({str(name) for types in chosen.values() for name in types}))
    warnings.warn(
        f"activity types ({names or 'none'}) cannot be chosen one by one: all of an activity is recorded",
        stacklevel=7,
    )
