"""The ``opprof`` fixture: a profiled test's view of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_opprof.capture.ranges import record_function
from pytest_opprof.events.event_list import EventList
from pytest_opprof.plugin.plans import PLAN
from pytest_opprof.plugin.stash import SESSION, UNMEASURED

if TYPE_CHECKING:
    from pytest_opprof.events.key_averages import KeyAverages
    from pytest_opprof.plugin.stepping import Stepping


class Opprof:
    """A test's own profile.

    Attributes:
        record_function: Names a range, as ``torch.profiler.record_function`` does.
    """

    record_function = record_function

    def __init__(self, stepping: Stepping | None, *, unmeasured: str | None = None) -> None:
        self._stepping = stepping
        self._unmeasured = unmeasured

    def step(self) -> None:
        """End a step and begin the next. The marker's schedule decides which steps are recorded."""
        if self._stepping is not None:
            self._stepping.step()

    def benchmark(
        self, benchmark: Callable[..., Any], function: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Time `function` with a `benchmark` fixture, then profile it by the marker's schedule.

        With pytest-benchmark's fixture, ``benchmark(function, ...)`` does the same. Use this method for
        fixtures that do not show what they time, such as CodSpeed's.

        Args:
            benchmark: The fixture, which the test takes too.
            function: The function to time and to profile.
            args: Its positional arguments.
            kwargs: Its keyword arguments.

        Returns:
            The fixture's result.

        Raises:
            UsageError: The test is to be profiled, and `benchmark` is not a fixture that it takes.
        """
        __tracebackhide__ = True
        if self._stepping is None:
            return benchmark(function, *args, **kwargs)
        return self._stepping.benchmark(benchmark, function, *args, **kwargs)

    @property
    def counts(self) -> Mapping[str, int]:
        """Calls of each op and range, summed over the finished active steps; 0 for one that never ran."""
        self._skip_unmeasured()
        counts: Counter[str] = Counter()
        for recording in self._stepping.live if self._stepping else ():
            finished = [
                i
                for i, step in enumerate(recording.steps)
                if step.end_ns < recording.trace_start_ns + recording.trace_end_ns
            ]
            for group in recording.groups():
                counts[group.name] += sum(group.steps["count"][i] for i in finished)
        return counts

    def key_averages(self, *, group_by_input_shape: bool | None = None) -> KeyAverages:
        """The events recorded so far, summed up by name, as ``torch.profiler.profile.key_averages`` does.

        Args:
            group_by_input_shape: A row for each combination of input shapes (default: as the marker says).
        """
        self._skip_unmeasured()
        if group_by_input_shape is None:
            group_by_input_shape = bool(self._stepping and self._stepping.request.group_by_input_shape)
        recordings: list[Any] = self._stepping.live if self._stepping else []
        return EventList(recordings).key_averages(group_by_input_shapes=group_by_input_shape)

    def _skip_unmeasured(self) -> None:
        """Skip a test that reads what cannot be measured: its assertions would pass or fail by chance."""
        if self._unmeasured is not None:
            pytest.skip(self._unmeasured)


def fixture_for(item: pytest.Item) -> Opprof:
    """The fixture's value for one test."""
    session = item.config.stash.get(SESSION, None)
    is_planned = PLAN in item.stash  # whether it is marked
    return Opprof(
        session.stepping_of(item) if session else None,
        unmeasured=item.config.stash.get(UNMEASURED, None) if is_planned else None,
    )
