"""Which tests must not run in a second process while they are set up in this one: by their fixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import unwrap
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, Final

import pytest

from pytest_opprof.capture.call_sites import library_folders

_EMPTY: Final = CellType()


def must_run_alone(item: pytest.Item) -> bool:
    """Whether a test uses the project's own fixtures that outlive it.

    A second process would make and end what they made, such as a database by its name, while later tests of
    this one still use it.
    """
    return any(
        not code.co_filename.startswith(library_folders())
        for fixture in _fixtures(item)
        if fixture.scope != "function"
        for code in _codes(fixture.func)
    )


def _fixtures(item: pytest.Item) -> Iterator[Any]:
    """A test's fixtures: those known at collection, and those that were asked for by name later."""
    info, request = getattr(item, "_fixtureinfo", None), getattr(item, "_request", None)
    if info is not None:
        for name in info.names_closure:
            yield from info.name2fixturedefs.get(name, ())
    yield from getattr(request, "_fixture_defs", {}).values()


def _codes(function: Callable[..., object]) -> list[CodeType]:
    """The code of a fixture's function, and of those that it wraps or has in its closure.

    A decorator has the project's function there, and so has pytest's fixture for `setup_module()`.
    """
    found: dict[CodeType, None] = {}
    left: list[object] = [function, unwrap(function)]
    while left:
        one = left.pop()
        if type(one) is MethodType:  # not isinstance(): that would ask the objects in a closure
            one = one.__func__
        if type(one) is FunctionType and one.__code__ not in found:
            found[one.__code__] = None
            left += [cell.cell_contents for cell in one.__closure__ or () if cell != _EMPTY]
    return list(found)
