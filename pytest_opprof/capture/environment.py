"""The environment of a measurement: the fields that metrics depend on, and details for readers."""

from __future__ import annotations

import functools
import importlib.metadata
import itertools
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pytest_opprof.capture.gpus import expected_architecture, gpu_fields
from pytest_opprof.capture.torch_build import installed_torch
from pytest_opprof.capture.torch_ops import imported_torch

_OF_COMPILERS: Final = ("TORCHINDUCTOR_", "TORCHDYNAMO_", "TORCH_COMPILE_", "TRITON_")
_OF_THE_MACHINE: Final = ("_DIR", "_PATH", "_PYTHONPATH", "_THREADS", "_DEBUG", "_LOGS")
_FULL: Final = frozenset({"none", "ieee"})
_LONGEST: Final = 1_000  # characters; a saved run takes 1,024
# Each CI's variables for a shard's number and for their count, and the first shard's number.
_SHARD_VARIABLES = (
    ("CI_NODE_INDEX", "CI_NODE_TOTAL", 1),  # GitLab
    ("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0),
    ("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0),
)


def fingerprint() -> dict[str, str]:
    """The fields that metrics depend on (`metrics.FINGERPRINT_FIELDS`), as far as they are known now.

    Versions are of installed packages. A library's other fields are known once the process has imported it,
    those of devices once it has started CUDA.
    """
    of_numpy = _of_numpy() if hasattr(sys.modules.get("numpy"), "show_config") else {}
    fields = {**_of_process(), **of_numpy, **gpu_fields()}
    torch = imported_torch()
    if torch is not None:
        fields |= {name: value for name, value in _of_torch(torch).items() if value or name not in fields}
    return _not_empty(fields)


def settings() -> dict[str, str]:
    """The fingerprint's fields that code may set while tests run (`metrics.fingerprint.SETTINGS`)."""
    torch = imported_torch()
    return _not_empty({"tracer": _tracer(), **({} if torch is None else _settings_of(torch))})


@functools.cache
def _of_process() -> Mapping[str, str]:
    """What a process cannot change: a test may replace what would be asked, so ask before it runs."""
    fields = {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "implementation": platform.python_implementation(),
        "machine": platform.machine(),
        "torch": installed_torch(),
        "triton": _version("triton"),
        "numpy": _version("numpy"),
        "python_malloc": _python_malloc(),
        "cpu_model": _cpu_model(),
        "cpu_count": str(len(os.sched_getaffinity(0))),
    }
    return MappingProxyType(fields)


def _not_empty(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}


def expected_fingerprint() -> dict[str, str]:
    """The fingerprint expected when the tests run, which may be the first to import torch.

    Until then only torch's version is known, and the devices' architecture if all have the same.
    """
    known = fingerprint()
    return known if "gpu_arch" in known else _not_empty({**known, "gpu_arch": expected_architecture()})


def details() -> dict[str, str]:
    """Facts for readers, which no comparison looks at."""
    return _not_empty(
        {
            "python": platform.python_version(),
            "platform": platform.platform(),
            "pytest": _version("pytest"),
            "pytest-opprof": _version("pytest-opprof"),
            **_place_among_others(),
        }
    )


def _place_among_others() -> dict[str, str]:
    """This process's rank, as torchrun sets it, and its shard of a CI job."""
    found = {"rank": os.environ.get("RANK", ""), "world_size": os.environ.get("WORLD_SIZE", "")}
    for index, count, first in _SHARD_VARIABLES:
        number, of = os.environ.get(index, ""), os.environ.get(count, "")
        if number.isdecimal() and of.isdecimal():
            found["shard"] = f"{int(number) - first + 1} of {of}"
    return found


@functools.cache
def _of_numpy() -> Mapping[str, str]:
    """NumPy's fields of the fingerprint; it must be imported already."""
    numpy: Any = sys.modules["numpy"]
    try:
        config = numpy.show_config(mode="dicts")
    except TypeError:  # before NumPy 1.25 it prints and returns nothing
        config = {}
    blas = config.get("Build Dependencies", {}).get("blas", {})
    # The features that NumPy supports and this CPU has, without those of NPY_DISABLE_CPU_FEATURES.
    found = config.get("SIMD Extensions", {}).get("found", [])
    fields = {
        "blas": " ".join(str(blas[key]) for key in ("name", "version") if key in blas),
        "numpy_cpu": " ".join(map(str, found)),
    }
    return MappingProxyType(fields)


def _of_torch(torch: Any) -> dict[str, str]:
    return {
        "torch": str(torch.__version__),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cuda": str(torch.version.cuda or ""),
        "cudnn": _cudnn(torch),
        **_settings_of(torch),
    }


def _settings_of(torch: Any) -> dict[str, str]:
    return {
        "determinism": _determinism(torch),
        "precision": _precision(torch),
        "compile": _compile_flags(),
        "threads": str(torch.get_num_threads()),
    }


def _cudnn(torch: Any) -> str:
    """The version of cuDNN if CUDA has started: asking earlier would load it."""
    if not torch.cuda.is_initialized():
        return ""
    try:
        return str(torch.backends.cudnn.version() or "")
    except RuntimeError:  # not the one torch was built against, as torch's ops will report
        return ""


def _determinism(torch: Any) -> str:
    flags = {
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "cudnn.deterministic": torch.backends.cudnn.deterministic,
        "cudnn.disabled": not torch.backends.cudnn.enabled,
    }
    return " ".join([*sorted(name for name, on in flags.items() if on), *_set("CUBLAS_WORKSPACE_CONFIG")])


def _precision(torch: Any) -> str:
    """Where float32 may be computed at lower precision; asked for without deprecated calls."""
    ask = getattr(torch._C, "_get_fp32_precision_getter", None)  # noqa: SLF001  # what torch.backends asks
    if ask is None:  # before torch 2.9
        precision = torch.get_float32_matmul_precision()
        return "" if precision == "highest" else f"matmul={precision}"
    places = itertools.product(("cuda", "mkldnn"), ("matmul", "conv", "rnn"))
    asked = ((f"{backend}.{op}", ask(backend, op)) for backend, op in places)
    return " ".join(f"{place}={precision}" for place, precision in asked if precision not in _FULL)


def _compile_flags() -> str:
    """The compilers' variables that are set, except those for paths, threads and logs."""
    names = sorted(name for name in os.environ if name.startswith(_OF_COMPILERS))
    return " ".join(_set(*(name for name in names if not name.endswith(_OF_THE_MACHINE))))[:_LONGEST]


def _set(*variables: str) -> list[str]:
    return [f"{name}={os.environ[name]}" for name in variables if name in os.environ]


def _python_malloc() -> str:
    """The setting of Python's allocators, if it is not the default."""
    told = "" if sys.flags.ignore_environment else os.environ.get("PYTHONMALLOC", "")
    return told or ("debug" if sys.flags.dev_mode else "")


def _tracer() -> str:
    """The packages that trace this thread or use ``sys.monitoring``, such as ``coverage``."""
    function = sys.gettrace()
    module = getattr(function, "__module__", None) or type(function).__module__
    names = set() if function is None else {str(module).partition(".")[0]}
    monitoring = getattr(sys, "monitoring", None)  # since 3.12
    if monitoring is not None:
        names |= {tool.partition(".")[0] for tool in map(monitoring.get_tool, range(6)) if tool}
    return " ".join(sorted(names))[:_LONGEST]


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())
