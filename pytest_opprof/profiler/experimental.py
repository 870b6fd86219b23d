"""``_ExperimentalConfig``: Kineto's settings, some of which have an effect here."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from pytest_opprof.capture.counters import check_counters

_WITH_MEANING: Final = frozenset(
    {
        "capture_overload_names",
        "performance_events",
        "profile_all_threads",
        "record_python_gc_info",
        "trace_only",
        "verbose",
    }
)


@dataclass
class ExperimentalConfig:
    """Torch's ``_ExperimentalConfig``, with its arguments in its order.

    These work: ``trace_only``, ``record_python_gc_info``, ``capture_overload_names`` and
    ``performance_events``. ``verbose`` and ``profile_all_threads`` are always on: events have stacks, and all
    threads are recorded. The others are about Kineto and CUPTI; a profiler warns if one of them is set.

    Attributes:
        capture_overload_names: Record which overload of each op ran. Needs the compiled observer.
        performance_events: The counters to read in each op and range, at most 4: "cycles", "instructions" and
            others (``opprof doctor`` lists them).
        record_python_gc_info: Record Python's garbage collections, as ranges called "Python GC".
        trace_only: Record only for a trace: ``events()`` and ``key_averages()`` are refused.
    """

    profiler_metrics: Sequence[str] = ()
    profiler_measure_per_kernel: bool = False
    verbose: bool = False
    performance_events: Sequence[str] = ()
    enable_cuda_sync_events: bool = False
    adjust_profiler_step: bool = False
    disable_external_correlation: bool = False
    profile_all_threads: bool = False
    capture_overload_names: bool = False
    record_python_gc_info: bool = False
    expose_kineto_event_metadata: bool = False
    custom_profiler_config: str = ""
    adjust_timestamps: bool = False
    trace_only: bool = False

    @property
    def without_meaning(self) -> list[str]:
        """The settings that are set but have no effect here."""
        given = {one.name for one in fields(self) if getattr(self, one.name) != one.default}
        return sorted(given - _WITH_MEANING)


def settings_of(config: object | None, *, with_stack: bool) -> ExperimentalConfig:
    """Read a profiler's ``experimental_config``, and warn of settings without effect.

    It is ours, torch's, or None. Stacks turn ``trace_only`` off.
    """
    settings = read_config(config)
    check_counters(settings.performance_events)
    if settings.without_meaning:
        warnings.warn(
            f"experimental_config: {', '.join(settings.without_meaning)}: accepted, but has no effect",
            stacklevel=4,
        )
    if settings.trace_only and with_stack:
        warnings.warn(
            "trace_only=True is incompatible with with_stack=True "
            "(stack traces require event post-processing). Disabling trace_only.",
            stacklevel=4,
        )
        settings = replace(settings, trace_only=False)
    return settings


def read_config(config: object | None) -> ExperimentalConfig:
    """A profiler's ``experimental_config``, from ours, torch's, or None.

    Torch's tells its fields only to pickle, in the order of its arguments, but some releases put
    ``performance_events`` last, and older ones lack later fields. So each value goes to the next field of its
    type.

    Raises:
        TypeError: It is something else.
    """
    if config is None or isinstance(config, ExperimentalConfig):
        return config or ExperimentalConfig()
    given: dict[str, Any] = {}
    state = config.__getstate__()
    if not isinstance(state, tuple):
        raise TypeError(f"experimental_config is {config!r}; give an _ExperimentalConfig, or None")
    for value in state:
        kind = tuple if isinstance(value, list) else type(value)
        of_kind = (one.name for one in fields(ExperimentalConfig) if type(one.default) is kind)
        name = next((name for name in of_kind if name not in given), None)
        if name is not None:  # else it is a field of a newer torch
            given[name] = tuple(map(_text, value)) if kind is tuple else value
    return ExperimentalConfig(**given)


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name
