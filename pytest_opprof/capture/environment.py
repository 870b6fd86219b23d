"""What the numbers were measured on: the fields that metrics depend on, and what is good to know."""

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
_LONGEST: Final = 1_000  # of what a document takes
# What a CI calls a shard's number, how it calls their count, and the number of the first.
_SHARD_VARIABLES = (
    ("CI_NODE_INDEX", "CI_NODE_TOTAL", 1),  # GitLab
    ("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0),
    ("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0),
)


def fingerprint() -> dict[str, str]:
    """The fields that metrics depend on, as `metrics.FINGERPRINT_FIELDS` names them; only those known here.

    Versions are those installed. What a library says of itself is there only where the process has imported
    it, and devices where it has started CUDA.
    """
    fields = {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "implementation": platform.python_implementation(),
        "machine": platform.machine(),
        "torch": installed_torch(),
        "triton": _version("triton"),
        "numpy": _version("numpy"),
        **(_of_numpy() if hasattr(sys.modules.get("numpy"), "show_config") else {}),
        "python_malloc": _python_malloc(),
        "cpu_model": _cpu_model(),
        "cpu_count": str(len(os.sched_getaffinity(0))),
        **gpu_fields(),
    }
    torch = imported_torch()
    if torch is not None:
        fields |= {name: value for name, value in _of_torch(torch).items() if value or name not in fields}
    return _not_empty(fields)


def settings() -> dict[str, str]:
    """Of the fingerprint, what code may set while tests run (`metrics.fingerprint.SETTINGS`)."""
    torch = imported_torch()
    return _not_empty({"tracer": _tracer(), **({} if torch is None else _settings_of(torch))})


def _not_empty(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}


def expected_fingerprint() -> dict[str, str]:
    """The fingerprint as it will be when the tests run, where torch may be imported only then.

    What torch says of itself beside its version is unknown until then; of devices their architecture is
    known, where all of this machine have the same.
    """
    known = fingerprint()
    return known if "gpu_arch" in known else _not_empty({**known, "gpu_arch": expected_architecture()})


def details() -> dict[str, str]:
    """What a reader may want to know and no comparison looks at."""
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
    """Which rank this process is, as torchrun tells its children, and which shard of a CI's job."""
    found = {"rank": os.environ.get("RANK", ""), "world_size": os.environ.get("WORLD_SIZE", "")}
    for index, count, first in _SHARD_VARIABLES:
        number, of = os.environ.get(index, ""), os.environ.get(count, "")
        if number.isdecimal() and of.isdecimal():
            found["shard"] = f"{int(number) - first + 1} of {of}"
    return found


@functools.cache
def _of_numpy() -> Mapping[str, str]:
    """The fields of the fingerprint that NumPy answers for, once somebody has imported it."""
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
    """Its version where CUDA was started: asking earlier would load it."""
    if not torch.cuda.is_initialized():
        return ""
    try:
        return str(torch.backends.cudnn.version() or "")
    except RuntimeError:  # not the one that torch was built against: torch's own ops say so
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
    """How float32 may be computed where that is not by float32; asked for as no deprecated way is."""
    ask = getattr(torch._C, "_get_fp32_precision_getter", None)  # noqa: SLF001  # what torch.backends asks
    if ask is None:  # before torch 2.9
        precision = torch.get_float32_matmul_precision()
        return "" if precision == "highest" else f"matmul={precision}"
    places = itertools.product(("cuda", "mkldnn"), ("matmul", "conv", "rnn"))
    asked = ((f"{backend}.{op}", ask(backend, op)) for backend, op in places)
    return " ".join(f"{place}={precision}" for place, precision in asked if precision not in _FULL)


def _compile_flags() -> str:
    """What is set of the compiler's variables, but for where it puts files and how many it makes at once."""
    names = sorted(name for name in os.environ if name.startswith(_OF_COMPILERS))
    return " ".join(_set(*(name for name in names if not name.endswith(_OF_THE_MACHINE))))[:_LONGEST]


def _set(*variables: str) -> list[str]:
    return [f"{name}={os.environ[name]}" for name in variables if name in os.environ]


def _python_malloc() -> str:
    """What Python's allocators were set to, where that is not the default."""
    told = "" if sys.flags.ignore_environment else os.environ.get("PYTHONMALLOC", "")
    return told or ("debug" if sys.flags.dev_mode else "")


def _tracer() -> str:
    """Whose trace function, or tool of ``sys.monitoring``, looks at this thread's code: ``coverage``."""
    function = sys.gettrace()
    module = getattr(function, "__module__", None) or type(function).__module__
    names = set() if function is None else {str(module).partition(".")[0]}
    monitoring = getattr(sys, "monitoring", None)  # since 3.12
    if monitoring is not None:
        names |= {tool.partition(".")[0] for tool in map(monitoring.get_tool, range(6)) if tool}
    return " ".join(sorted(names))[:_LONGEST]


@functools.cache
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
