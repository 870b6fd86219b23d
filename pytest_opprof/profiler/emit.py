"""``emit_itt`` and ``emit_nvtx``: ops as ranges for VTune, Nsight Systems and their like."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from types import TracebackType
from typing import ClassVar, Self

from pytest_opprof.capture.emission import Target, emitting, open_tool
from pytest_opprof.capture.torch_ops import imported_torch
from pytest_opprof.errors import CollectorError
from pytest_opprof.events.columns import Compat


class _Emit:
    """Ops and our own ranges, of all threads, for a tool to see."""

    _target: ClassVar[Target]

    def __init__(
        self,
        enabled: bool = True,  # noqa: FBT001, FBT002  # torch's signature
        record_shapes: bool = False,  # noqa: FBT001, FBT002  # torch's signature
        *,
        compat: Compat | None = None,
    ) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.entered = False
        self._compat = compat
        self._emitting = ExitStack()

    def __enter__(self) -> Self | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self._target.name} annotation context manager is not reentrant")
        self.entered = True
        try:
            open_tool(self._target)
        except CollectorError as error:
            warnings.warn(f"nothing is emitted: {error}", stacklevel=2)
            return self
        self._emitting.enter_context(
            emitting(
                self._target,
                record_shapes=self.record_shapes,
                torchs_own_text=self._compat == "torch",
            )
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._emitting.close()


class emit_itt(_Emit):  # noqa: N801  # torch's name
    """Emit every op as an ITT range while the block runs, with torch's meaning of ``emit_itt``.

    The ranges of our own ``record_function`` are emitted too. The tool is the library that
    ``INTEL_LIBITTNOTIFY64`` names, as VTune sets it; where there is none, a warning says so and nothing is
    emitted. Unlike torch's, the ops of all threads are seen.

    Args:
        enabled: False makes it do nothing.
        record_shapes: Append the sizes of what ops are given, ``, sizes = [[2, 3], []]``, with ``[]`` for all
            that is not a tensor.
        compat: ``"torch"`` emits bare names even with shapes, as torch itself does.

    Raises:
        RuntimeError: It is entered a second time.
        CaptureUnavailableError: Torch is imported, and no C++ compiler can build what sees its ops.
    """

    _target = Target.ITT


class emit_nvtx(_Emit):  # noqa: N801  # torch's name
    """Emit every op as an NVTX range while the block runs, with torch's meaning of ``emit_nvtx``.

    It needs no torch that was built with CUDA, and no torch at all for the ranges of our own
    ``record_function``. The tool is the library that ``NVTX_INJECTION64_PATH`` names, as Nsight Systems sets
    it; where there is none, a warning says so and nothing is emitted.

    A range says ``aten::mm, seq = 4, op_id = 17``, and that of its backward node
    ``MmBackward0, stashed seq = 4, op_id = 40``: the number that they share is the forward's. With shapes,
    ``sizes = [[2, 3], []]`` follows, and ``input_op_ids = [(15,0), (0,0)]``: which op, and which of its
    outputs, each tensor came from; (0,-1) for a tensor from outside, (0,0) for what is not a tensor.

    Args:
        enabled: False makes it do nothing.
        record_shapes: Append sizes and ids of what ops are given.
        compat: ``"torch"`` writes ``seq`` for backward nodes too, as torch does and does not document.

    Raises:
        RuntimeError: It is entered a second time.
        CaptureUnavailableError: Torch is imported, and no C++ compiler can build what sees its ops.
    """

    _target = Target.NVTX

    def __enter__(self) -> Self | None:
        _synchronize(enabled=self.enabled)
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _synchronize(enabled=self.enabled)
        super().__exit__(kind, error, traceback)


def _synchronize(*, enabled: bool) -> None:
    """Wait for the kernels of before, so that none of them falls among the ranges; as torch does."""
    torch = imported_torch()
    if enabled and torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
