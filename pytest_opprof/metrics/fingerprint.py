"""What values depend on beside the code: the fields of an environment, and which family looks at which."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# The field of a test, not of its run: whether what torch.compile made for it came from a cache.
COMPILE_CACHE = "compile_cache"
# The field of a test whose instructions were counted: which libraries it ran.
LIBRARIES = "libraries"
# The field of a test whose machine instructions were counted: the CPU that QEMU showed it, and the C library.
GUEST = "guest"

# The fields, and how each is called in a sentence.
FINGERPRINT_FIELDS: Mapping[str, str] = MappingProxyType(
    {
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
)
# What code may set while tests run: each test has them as they were when it ended.
SETTINGS = frozenset({"determinism", "precision", "compile", "threads", "tracer", LIBRARIES, GUEST})
# What Python code alone decides.
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
# NumPy's arrays and the scratch memory of its BLAS: in the memory of Python and of malloc, not of tensors.
NUMPY_FIELDS = frozenset({"numpy", "blas", "numpy_cpu"})
# Beside them, what runs in the middle of a test, such as coverage's tracer.
PYTHON_MEMORY_FIELDS = NUMPY_FIELDS | {"tracer"}
# Which allocator Python's objects come from: some of them take it from malloc.
MALLOC_FIELDS = frozenset({"python_malloc"})
# Some kernels take scratch memory for each thread.
MEMORY_FIELDS = COUNT_FIELDS | PYTHON_MEMORY_FIELDS | MALLOC_FIELDS | {"threads"}
# Known where the package is installed, or once it is imported.
OF_PACKAGES = NUMPY_FIELDS | {"torch", "triton", "cpu_capability"}
# Scratch memory of libraries goes by how many multiprocessors there are.
DEVICE_MEMORY_FIELDS = COUNT_FIELDS | {"gpu_model"}
TIME_FIELDS = frozenset(FINGERPRINT_FIELDS) - {LIBRARIES, GUEST}
