"""Names of events: how they are summed up, which torch hides, and how C++ names are demangled."""

from __future__ import annotations

import ctypes
import functools
import re
from collections import defaultdict
from typing import Any, Final

MEMORY_EVENT_NAME: Final = "[memory]"
OUT_OF_MEMORY_EVENT_NAME: Final = "[OutOfMemory]"

STEP_PREFIX: Final = "ProfilerStep#"
_ALL_STEPS: Final = "ProfilerStep*"
_MANGLED_PREFIX: Final = "_Z"

# References in a mangled name: to an earlier part, to a template argument, to each member of a pack.
_REFERENCE: Final = re.compile(r"S[0-9A-Z]*_|T[0-9]*_|Dp")
_MOST_OF_LETTER: Final = 40  # plain characters; the two letters `Ss` stand for 70
_MOST_OF_PACK: Final = 8
# Plain characters, by an estimate that is some forty times too high.
_LONGEST_NAME: Final = 1 << 28

_HIDDEN_NAMES: Final = frozenset(
    {
        MEMORY_EVENT_NAME,
        OUT_OF_MEMORY_EVENT_NAME,
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    }
)

# Uninformative frames between a user's call and an op: a part of the file's name, and of the function's.
_HIDDEN_FRAMES: Final = (
    ("autograd/__init__", "_make_grads"),
    ("autograd/__init__", "backward"),
    ("torch/tensor", "backward"),
    ("_internal/common_utils", "prof_callable"),
    ("_internal/common_utils", "prof_func_call"),
    ("_internal/common_utils", "prof_meth_call"),
)


class StringTable(defaultdict[str, str]):
    """Demangled C++ names by mangled name, as in torch's class of that name.

    Every name of two or more characters is treated as mangled, so ``Pi`` becomes ``int*``.
    """

    def __missing__(self, key: str) -> str:
        # A single letter is an op's name more often than a type's.
        self[key] = demangled(key) if len(key) > 1 else key
        return self[key]


def filter_name(name: str) -> bool:
    """Whether torch hides events of this name: helper ops and memory records."""
    return name in _HIDDEN_NAMES


def filter_stack_entry(entry: str) -> bool:
    """Whether torch keeps this stack entry. It drops frames of autograd's own entry points."""
    return all(not (file in entry and function in entry) for file, function in _HIDDEN_FRAMES)


def rewrite_name(name: str, with_wildcard: bool = False) -> str:  # noqa: FBT001, FBT002  # torch's signature
    """A name as torch shows it.

    Args:
        name: As recorded; a mangled name is demangled.
        with_wildcard: Name all steps ``ProfilerStep*``.
    """
    name = StringTable()[name]
    return _ALL_STEPS if with_wildcard and name.startswith(STEP_PREFIX) else name


def summed_name(trace_name: str) -> str:
    """The name an event is summed up under: one for all steps, demangled if it is a C++ name."""
    return _ALL_STEPS if trace_name.startswith(STEP_PREFIX) else readable_name(trace_name)


def readable_name(trace_name: str) -> str:
    """The name of an event, demangled if it is a C++ name."""
    return demangled(trace_name) if trace_name.startswith(_MANGLED_PREFIX) else trace_name


@functools.lru_cache(maxsize=1 << 12)
def demangled(name: str) -> str:
    """A name as the C++ runtime demangles it; unchanged if it is not a mangled name or there is no runtime.

    It is also unchanged if its plain text may be too long: some 250 characters can expand to fill the memory.
    """
    demangle = _cxx_demangle()
    if demangle is None or "\0" in name or _may_be_too_long(name):
        return name
    status = ctypes.c_int()
    text = demangle(name.encode("utf-8", "surrogatepass"), None, None, ctypes.byref(status))
    if not text:
        return name
    try:
        return ctypes.string_at(text).decode("utf-8", "surrogatepass")
    finally:
        _free(ctypes.c_void_p(text))


def _may_be_too_long(name: str) -> bool:
    """Whether an upper bound of the plain text of a mangled name exceeds the limit.

    A reference, such as ``S0_`` to an earlier part or ``T_`` to a template argument, expands at most to all
    the text before its first occurrence.
    """
    total, at, first = 0, 0, dict[str, int]()
    for found in _REFERENCE.finditer(name):
        total += (found.start() - at) * _MOST_OF_LETTER
        total += total * _MOST_OF_PACK if found[0] == "Dp" else first.setdefault(found[0], total)
        if total > _LONGEST_NAME:
            return True
        at = found.end()
    return total + (len(name) - at) * _MOST_OF_LETTER > _LONGEST_NAME


@functools.cache
def _cxx_demangle() -> Any:
    try:
        demangle = ctypes.CDLL("libstdc++.so.6")["__cxa_demangle"]
    except OSError:
        return None
    demangle.restype = ctypes.c_void_p
    demangle.argtypes = [
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_int),
    ]
    return demangle


# The C library allocates what `__cxa_demangle` returns.
_free: Final = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]
_free.restype = None
