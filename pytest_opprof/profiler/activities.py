"""What a profiler is asked to look at, in torch's words."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Collection, Iterable, Mapping


class ProfilerActivity(enum.Enum):
    """A group of activities; the numbers are torch's."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be captured here: those of the CPU."""
    return {ProfilerActivity.CPU}


def parse_activities(
    requested: Iterable[object] | None, *, use_cuda: bool | None = None
) -> set[ProfilerActivity]:
    """Read the ``activities`` argument of a profiler, and the deprecated one that came before it.

    Args:
        requested: Members of `ProfilerActivity` or of torch's enum of that name, or mappings from such a
            member to names of activity types; None means all that are supported.
        use_cuda: Adds CUDA, or takes it away.

    Raises:
        AssertionError: There are none. Torch raises the same.
        ValueError: One is named twice.
        TypeError: Something else is among them.
    """
    activities = supported_activities() if requested is None else _distinct(requested)
    if use_cuda is not None:
        message = "`use_cuda` is deprecated, use `activities` argument instead"
        warnings.warn(message, FutureWarning, stacklevel=3)
        cuda = {ProfilerActivity.CUDA}
        activities = activities | cuda if use_cuda else activities - cuda
    if not activities:
        raise AssertionError("No valid profiler activities found")
    return activities


def warn_of_missing(activities: Collection[ProfilerActivity], **requested: bool) -> None:
    """Say once, by name, what a profiler was asked for and cannot do here.

    Args:
        activities: What it was asked to look at.
        requested: Its other arguments that do nothing yet, and whether they were given.
    """
    devices = sorted(activity.name for activity in set(activities) - supported_activities())
    if devices:
        warnings.warn(
            f"{' and '.join(devices)} activity is not available here: nothing of it will be in the results",
            stacklevel=3,
        )
    missing = [name for name, given in requested.items() if given]
    if missing:
        warnings.warn(
            f"{' and '.join(missing)}: accepted, but not captured yet: nothing of it will be in the results",
            stacklevel=3,
        )


def _distinct(requested: Iterable[object]) -> set[ProfilerActivity]:
    activities: set[ProfilerActivity] = set()
    for item in requested:
        for member in item if isinstance(item, Mapping) else (item,):
            activity = _activity(member)
            if activity in activities:
                raise ValueError(f"activity {activity.name} is given more than once; name it once")
            activities.add(activity)
    return activities


def _activity(member: object) -> ProfilerActivity:
    if isinstance(member, ProfilerActivity):
        return member
    # Torch's enum is made by pybind11 and is no enum.Enum: its members are known by their type's name.
    name = getattr(member, "name", None)
    if type(member).__name__ == ProfilerActivity.__name__ and isinstance(name, str):
        activity = ProfilerActivity.__members__.get(name)
        if activity is not None:
            return activity
    raise TypeError(f"activities must hold ProfilerActivity members or dicts of them, not {member!r}")
