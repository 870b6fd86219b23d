"""A Triton kernel, which is compiled from this file: imported only if Triton is installed."""

from typing import Any

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]  # Triton has no types
def _add(one, other, out, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, N803  # Triton's own language
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.load(one + at, mask=inside) + tl.load(other + at, mask=inside), mask=inside)


def add(one: Any, other: Any, out: Any) -> None:
    _add[(triton.cdiv(out.numel(), 1024),)](one, other, out, out.numel(), BLOCK=1024)
