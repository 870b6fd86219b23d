"""``emit_itt`` and ``emit_nvtx``: ops as ranges for VTune, Nsight Systems and their like."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from types import TracebackType
from typing import ClassVar, Self

from pytest_opprof.capture.emission import Target, emitting, open_tool
from pytest_opprof.capture.torch_ops import imported_torch
from pytest_opprof.errors import CollectorError
from pytest_opprof.events.columns import Compat, check_compat


class _Emit:
    """Emits the ops and our own ranges of all threads to a tool."""

    _target: ClassVar[Target]

    def __init__(
        self,
        enabled: bool = True,  # noqa: FBT001, FBT002  # torch's signature
        record_shapes: bool = False,  # noqa: FBT001, FBT002  # torch's signature
        *,
        compat: Compat | None = None,
    ) -> None:
        check_compat(compat)
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
    ``INTEL_LIBITTNOTIFY64`` names, as VTune sets it; without one, nothing is emitted and a warning says so.
    Unlike torch's, it emits the ops of all threads.

    Args:
        enabled: False makes it do nothing.
        record_shapes: Append the sizes of an op's inputs, ``, sizes = [[2, 3], []]``, with ``[]`` for an
            input that is not a tensor.
        compat: ``"torch"`` emits bare names even with shapes, as torch itself does.

    Raises:
        UsageError: There is no such `compat`.
        RuntimeError: It is entered a second time.
        CaptureUnavailableError: Torch is imported, and no C++ compiler can build the observer of its ops.
    """

    _target = Target.ITT


class emit_nvtx(_Emit):  # noqa: N801  # torch's name
    """Emit every op as an NVTX range while the block runs, with torch's meaning of ``emit_nvtx``.

    Torch may be built without CUDA, and the ranges of our own ``record_function`` do not need torch. The tool
    is the library that ``NVTX_INJECTION64_PATH`` names, as Nsight Systems sets it; without one, nothing is
    emitted and a warning says so.

    An op's range is named ``aten::mm, seq = 4, op_id = 17``, and its backward node's
    ``MmBackward0, stashed seq = 4, op_id = 40``: both have the forward's number. With shapes,
    ``sizes = [[2, 3], []]`` follows, and ``input_op_ids = [(15,0), (0,0)]``: the op, and the index of its
    output, that each tensor came from; (0,-1) for a tensor from outside, (0,0) for an input that is not one.

    Args:
        enabled: False makes it do nothing.
        record_shapes: Append the sizes and ids of an op's inputs.
        compat: ``"torch"`` writes ``seq`` for backward nodes too, which torch does but does not document.

    Raises:
        UsageError: There is no such `compat`.
        RuntimeError: It is entered a second time.
        CaptureUnavailableError: Torch is imported, and no C++ compiler can build the observer of its ops.
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
    """Wait for earlier kernels, so that none of them runs among the ranges, as torch does."""
    torch = imported_torch()
    if enabled and torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
