"""Key averages by torch.profiler's name and arguments, of whatever has events."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pytest_opprof.events.columns import Compat
from pytest_opprof.events.key_averages import Grouping, KeyAverages


class Averaged(ABC):
    """Something that was recorded, and can be summed up."""

    __slots__ = ()

    def key_averages(
        self,
        group_by_input_shape: bool = False,  # noqa: FBT001, FBT002  # torch's signature
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,  # noqa: FBT001, FBT002  # torch's signature
        *,
        compat: Compat | None = None,
    ) -> KeyAverages:
        """The events summed up by name; see `EventList.key_averages`.

        Raises:
            UsageError: Nothing has been recorded to its end.
        """
        grouping = Grouping(
            shapes=group_by_input_shape, stack_depth=group_by_stack_n, overloads=group_by_overload_name
        )
        return self._averages(grouping, compat=compat)

    @abstractmethod
    def _averages(self, grouping: Grouping, *, compat: Compat | None) -> KeyAverages:
        """The events' averages."""
