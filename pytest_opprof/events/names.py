"""Names of events: which stand in for many, which torch hides, and what C++ calls them."""

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

# What a mangled name says of itself again: a part that it had, an argument of its template, each of several.
_REFERENCE: Final = re.compile(r"S[0-9A-Z]*_|T[0-9]*_|Dp")
_MOST_OF_LETTER: Final = 40  # plain characters; `Ss` are two letters, and 70 of them
_MOST_OF_PACK: Final = 8
# By an estimate that is some forty times too high.
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

# Frames between a user's call and the op that say nothing of either: a part of the file's name, and of the
# function's.
_HIDDEN_FRAMES: Final = (
    ("autograd/__init__", "_make_grads"),
    ("autograd/__init__", "backward"),
    ("torch/tensor", "backward"),
    ("_internal/common_utils", "prof_callable"),
    ("_internal/common_utils", "prof_func_call"),
    ("_internal/common_utils", "prof_meth_call"),
)


class StringTable(defaultdict[str, str]):
    """Names as C++ mangles them, and as a reader would write them; as torch's class of that name.

    It takes every name of two characters and more for a mangled one, so that ``Pi`` becomes ``int*``.
    """

    def __missing__(self, key: str) -> str:
        # A single letter is an op's name more often than a type's.
        self[key] = demangled(key) if len(key) > 1 else key
        return self[key]


def filter_name(name: str) -> bool:
    """Whether torch leaves events of this name out: helper ops, and records of memory."""
    return name in _HIDDEN_NAMES


def filter_stack_entry(entry: str) -> bool:
    """Whether torch keeps this entry of a stack: not the frames of autograd's own entry points."""
    return all(not (file in entry and function in entry) for file, function in _HIDDEN_FRAMES)


def rewrite_name(name: str, with_wildcard: bool = False) -> str:  # noqa: FBT001, FBT002  # torch's signature
    """A name as torch shows it.

    Args:
        name: As recorded; mangled ones are demangled.
        with_wildcard: All steps are ``ProfilerStep*``.
    """
    name = StringTable()[name]
    return _ALL_STEPS if with_wildcard and name.startswith(STEP_PREFIX) else name


def summed_name(trace_name: str) -> str:
    """The name under which an event is summed up: steps are one, and C++ names are readable."""
    return _ALL_STEPS if trace_name.startswith(STEP_PREFIX) else readable_name(trace_name)


def readable_name(trace_name: str) -> str:
    """The name of an event, demangled where it is one of C++'s."""
    return demangled(trace_name) if trace_name.startswith(_MANGLED_PREFIX) else trace_name


@functools.lru_cache(maxsize=1 << 12)
def demangled(name: str) -> str:
    """What the C++ runtime reads in a name; the name itself where it reads nothing or is not there.

    So it is where its plain text may be too long: some 250 characters can name what fills the memory.
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
    """Whether an upper bound for the plain text of a mangled name says so.

    It says ``S0_`` for the second part that it had so far, and ``T_`` for an argument of its template: at
    most all of what came before the first time that it says so.
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


# What `__cxa_demangle` answers was allocated by the C library.
_free: Final = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]
_free.restype = None
