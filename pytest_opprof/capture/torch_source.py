"""Torch's ops as a source of windows."""

from __future__ import annotations

from typing import Final

from pytest_opprof.capture.torch_ops import OpDetails, TorchOps, imported_torch, torch_ops
from pytest_opprof.errors import CaptureUnavailableError

WORK: Final = "work"
OF_WORK: Final = (WORK, "flops")  # what a window then knows of its ops
RETAINED: Final = "retained"  # and of its steps, by any of torch's memory


class TorchSource:
    """Looked for anew for each window, as torch may be imported at any time; a way once found stays.

    Attributes:
        ops: The way that was found; None without torch, or where nobody asked.
        problem: Why torch's ops cannot be recorded, where that was asked for.
        active: The ways that are switched on.
        details: What the open window records of each op.
        sampling: The share of the ops that it records.
    """

    def __init__(self) -> None:
        self.ops: TorchOps | None = None
        self.problem: str | None = None
        self.active: tuple[TorchOps, ...] = ()
        self.details = OpDetails(0)
        self.sampling = 1.0
        self._found: dict[bool, TorchOps | str] = {}  # by whether ITT was asked for; or why not

    def find(self, sources: frozenset[str]) -> None:
        """Look for torch, and how its ops can be seen."""
        torch = imported_torch()
        by_itt = "ops-itt" in sources
        self.ops = self.problem = None
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
            self.ops = found

    def choose(self) -> None:
        """Take what was found for the window that opens."""
        self.active = (self.ops,) if self.ops else ()

    @property
    def sees_memory(self) -> bool:
        """Whether what is switched on tells what torch's allocators do."""
        return any(source.sees_memory for source in self.active)

    @property
    def sees_work(self) -> bool:
        """Whether what is switched on tells what ops are given."""
        return any(source.sees_work for source in self.active)

    @property
    def can_sample(self) -> bool:
        """Whether what is switched on can record a share of the ops."""
        return any(source.can_sample for source in self.active)

    @property
    def names(self) -> tuple[str, ...]:
        """The words of documents for what is switched on."""
        return tuple(source.name for source in self.active)

    def enable(self) -> None:
        """The window opened: see ops."""
        for source in self.active:
            source.enable(self.details, sampling=self.sampling)

    def disable(self) -> None:
        """The window is about to close; also after a fork, in the child."""
        active, self.active = self.active, ()
        for source in active:
            source.disable()
