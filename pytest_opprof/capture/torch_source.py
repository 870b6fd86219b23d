"""Torch's ops as a source of events."""

from __future__ import annotations

from typing import Final

from pytest_opprof.capture.torch_ops import OpDetails, TorchOps, imported_torch, torch_ops
from pytest_opprof.errors import CaptureUnavailableError

WORK: Final = "work"
OF_WORK: Final = (WORK, "flops")  # what a window then records of ops
RETAINED: Final = "retained"  # and of steps, from torch's memory


class TorchSource:
    """Looks for torch before each window, as it may be imported at any time; a way once found is kept.

    Attributes:
        problem: Why requested ops of torch cannot be recorded; None if they can.
        active: The way that is switched on; None without torch, or without a request.
        details: What the open window records of each op.
        sampling: The share of the ops that it records.
    """

    def __init__(self) -> None:
        self.problem: str | None = None
        self.active: TorchOps | None = None
        self.details = OpDetails(0)
        self.sampling = 1.0
        self._ops: TorchOps | None = None
        self._found: dict[bool, TorchOps | str] = {}  # by whether ITT was requested; a text says why not

    def find(self, sources: frozenset[str]) -> None:
        """Look for torch, and for a way to see its ops."""
        torch = imported_torch()
        by_itt = "ops-itt" in sources
        self._ops = self.problem = None
        if torch is None or not (by_itt or "ops" in sources):
            return
        if by_itt not in self._found:
            try:
                self._found[by_itt] = torch_ops(torch, by_itt=by_itt)
            except CaptureUnavailableError as error:
                self._found[by_itt] = str(error)
        found = self._found[by_itt]
        if isinstance(found, str):
            self.problem = found
        else:
            self._ops = found

    def choose(self) -> None:
        """Use the way that was found for the window that opens."""
        self.active = self._ops

    @property
    def sees_details(self) -> bool:
        """Whether the active way sees more than names: ops' inputs, and torch's memory."""
        return self.active is not None and self.active.sees_details

    @property
    def names(self) -> tuple[str, ...]:
        """The names in saved runs of the active way."""
        return () if self.active is None else (self.active.name,)

    def enable(self) -> None:
        """The window opened: see ops."""
        if self.active is not None:
            self.active.enable(self.details, sampling=self.sampling)

    def disable(self) -> None:
        """The window is about to close; also after a fork, in the child."""
        active, self.active = self.active, None
        if active is not None:
            active.disable()
