"""What values depend on besides the code: the fields of an environment, and which metrics depend on which."""

from __future__ import annotations

from collections.abc import Mapping

# A field of a test, not of its run: whether the code of torch.compile came from a cache.
COMPILE_CACHE = "compile_cache"
# A field of a test whose instructions were counted: the installed libraries.
LIBRARIES = "libraries"
# A field of a test whose machine instructions were counted: QEMU's CPU, and the C library.
GUEST = "guest"

# The fields, and their names in sentences.
FINGERPRINT_FIELDS: Mapping[str, str] = {
    "python": "Python",  # minor version
    "implementation": "Python implementation",
    "machine": "machine architecture",
    "torch": "torch",
    "numpy": "NumPy",
    "blas": "BLAS of NumPy",
    "numpy_cpu": "CPU features of NumPy",
    "python_malloc": "PYTHONMALLOC",
    "cpu_capability": "CPU capability",
    "gpu_arch": "GPU architecture",
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "triton": "Triton",
    "determinism": "determinism flags",
    "precision": "precision of float32",
    "compile": "compile flags",
    COMPILE_CACHE: "compile cache",
    "cpu_model": "CPU model",
    "gpu_model": "GPU model",
    "gpu_driver": "GPU driver",
    "cpu_count": "CPU count",
    "threads": "threads of torch",
    "tracer": "trace function",
    LIBRARIES: "installed libraries",
    GUEST: "CPU of opprof replay",
}
# What code may set while tests run: each test keeps their values at its end.
SETTINGS = frozenset({"determinism", "precision", "compile", "threads", "tracer", LIBRARIES, GUEST})
# What counts of pure Python code depend on.
RANGE_FIELDS = frozenset({"python", "implementation"})
COUNT_FIELDS = RANGE_FIELDS | {
    "machine",
    "torch",
    "cpu_capability",
    "gpu_arch",
    "cuda",
    "cudnn",
    "triton",
    "determinism",
    "precision",
    "compile",
    COMPILE_CACHE,
}
# NumPy's arrays and the scratch memory of its BLAS count as Python's or malloc's memory, not as tensors.
NUMPY_FIELDS = frozenset({"numpy", "blas", "numpy_cpu"})
# Also what runs in the middle of a test, such as coverage's tracer.
PYTHON_MEMORY_FIELDS = NUMPY_FIELDS | {"tracer"}
# The allocator of Python's objects, which may use malloc.
MALLOC_FIELDS = frozenset({"python_malloc"})
# Some kernels take scratch memory for each thread.
MEMORY_FIELDS = COUNT_FIELDS | PYTHON_MEMORY_FIELDS | MALLOC_FIELDS | {"threads"}
# Known only if the package is installed, or once it is imported.
OF_PACKAGES = NUMPY_FIELDS | {"torch", "triton", "cpu_capability"}
# Libraries size their scratch memory by the number of multiprocessors.
DEVICE_MEMORY_FIELDS = COUNT_FIELDS | {"gpu_model"}
TIME_FIELDS = frozenset(FINGERPRINT_FIELDS) - {LIBRARIES, GUEST}
