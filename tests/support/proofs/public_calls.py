"""All public callables: the package's names, the methods of their classes, and those of returned objects."""

import enum
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest_opprof
from pytest_opprof import autograd, itt
from pytest_opprof.capture.recording import Recording
from pytest_opprof.events.key_averages import KeyAverages
from pytest_opprof.plugin.fixtures import Opprof
from pytest_opprof.profiler.cycle import Cycle
from pytest_opprof.traces.kineto import TraceFile

MODULES = {"": pytest_opprof, "autograd.": autograd, "itt.": itt}
# Returned classes: users do not construct them, but call their methods.
GIVEN: dict[str, Any] = {
    "KeyAverages": KeyAverages,
    "Opprof": Opprof,
    "TraceFile": TraceFile,
    "Cycle": Cycle,
}
# implemented in C, without a signature
WRITTEN_OUT = {"record_function": ("name", "args")}


def public_calls() -> dict[str, Callable[..., Any]]:
    """Public callables by the name that a user writes."""
    named = {
        f"{prefix}{name}": getattr(module, name)
        for prefix, module in MODULES.items()
        for name in module.__all__
        if name not in GIVEN
    }
    calls: dict[str, Callable[..., Any]] = {}
    seen: set[int] = set()  # autograd exports some of the package's names too
    for name, one in named.items():
        if id(one) not in seen:
            calls.update(_calls_of(name, one))
        seen.add(id(one))
    for name, one in GIVEN.items():
        calls.update(_methods_of(name, one))
    return calls


def public_arguments() -> list[str]:
    """Each argument as ``callable.argument``."""
    found = []
    for name, one in public_calls().items():
        arguments = WRITTEN_OUT.get(name) or [
            argument for argument in inspect.signature(one).parameters if argument not in {"self", "cls"}
        ]
        found += [f"{name}.{argument}" for argument in arguments]
    return found


def _calls_of(name: str, one: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    if not inspect.isclass(one):
        if callable(one):
            yield name, one
        return
    if issubclass(one, enum.Enum | dict):
        return
    # a class without its own initializer takes no arguments
    if one.__init__ is not object.__init__ or one.__new__ is not object.__new__:
        yield name, one
    yield from _methods_of(name, one)


def _is_method(member: object) -> bool:
    """A cached property is a routine too, because it is a descriptor, and since Python 3.13 has a module."""
    return callable(member) and inspect.isroutine(member)


def _methods_of(name: str, one: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for method, call in inspect.getmembers(one, _is_method):
        is_ours = (getattr(call, "__module__", None) or "").startswith("pytest_opprof")
        # the interface between events and recording is private
        is_asked = name == "KinetoRecording" and hasattr(Recording, method)
        if is_ours and not is_asked and not method.startswith("_"):
            yield f"{name}.{method}", call
