"""What the numbers were measured on: the fields that metrics depend on, and what is good to know."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

from pytest_opprof.capture.gpus import gpu_fields
from pytest_opprof.capture.torch_ops import imported_torch


def fingerprint() -> dict[str, str]:
    """The fields that metrics depend on, as `metrics.FINGERPRINT_FIELDS` names them; only those known here.

    What torch says of itself is there only where the process has imported it, and devices where it has
    started CUDA.
    """
    fields = {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "implementation": platform.python_implementation(),
        "machine": platform.machine(),
        "numpy": _version("numpy"),
        "cpu_model": _cpu_model(),
        "cpu_count": str(len(os.sched_getaffinity(0))),
        **gpu_fields(),
    }
    torch = imported_torch()
    if torch is not None:
        fields |= {name: value for name, value in _of_torch(torch).items() if value or name not in fields}
    return {name: value for name, value in fields.items() if value}


def details() -> dict[str, str]:
    """What a reader may want to know and no comparison looks at."""
    known = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "pytest": _version("pytest"),
        "pytest-opprof": _version("pytest-opprof"),
    }
    return {name: value for name, value in known.items() if value}


def _of_torch(torch: Any) -> dict[str, str]:
    flags = {
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "cudnn.deterministic": torch.backends.cudnn.deterministic,
    }
    switches = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE", "TORCHINDUCTOR_FREEZING")
    return {
        "torch": str(torch.__version__),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cuda": str(torch.version.cuda or ""),
        "triton": _version("triton"),
        "determinism": " ".join(sorted(name for name, on in flags.items() if on)),
        "compile": " ".join(f"{name}={os.environ[name]}" for name in switches if name in os.environ),
        "threads": str(torch.get_num_threads()),
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


@functools.cache
def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())
