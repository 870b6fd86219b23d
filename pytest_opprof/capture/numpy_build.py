"""The NumPy of this process: what it was built with, and what of the processor it uses."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any


def numpy_fields() -> Mapping[str, str]:
    """The fields of the fingerprint that NumPy answers for; none where nobody has imported it."""
    return _fields() if hasattr(sys.modules.get("numpy"), "show_config") else MappingProxyType({})


@functools.cache
def _fields() -> Mapping[str, str]:
    numpy: Any = sys.modules["numpy"]
    try:
        config = numpy.show_config(mode="dicts")
    except TypeError:  # before NumPy 1.25 it prints, and gives nothing
        config = {}
    blas = config.get("Build Dependencies", {}).get("blas", {})
    # What was found of what it has code for, without what NPY_DISABLE_CPU_FEATURES leaves out.
    found = config.get("SIMD Extensions", {}).get("found", [])
    fields = {
        "blas": " ".join(str(blas[key]) for key in ("name", "version") if key in blas),
        "numpy_cpu": " ".join(map(str, found)),
    }
    return MappingProxyType(fields)
