"""Which stacks are recorded: those of Python, those of C++, or both."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from pytest_opprof.errors import UsageError

StackKind: TypeAlias = Literal["python", "cpp", "all"]
WithStack: TypeAlias = bool | StackKind

_SOURCES: Final[dict[object, frozenset[str]]] = {
    False: frozenset(),
    True: frozenset({"python"}),
    "python": frozenset({"python"}),
    "cpp": frozenset({"cpp"}),
    "all": frozenset({"python", "cpp"}),
}


def stack_sources(given: object, *, where: str) -> frozenset[str]:
    """The sources that stacks of this kind come from.

    Args:
        given: What the user wrote as ``with_stack``: True is ``"python"``, as torch means it.

    Raises:
        UsageError: There is no such kind.
    """
    if isinstance(given, bool | str) and given in _SOURCES:
        return _SOURCES[given]
    raise UsageError(f"{where}: with_stack must be True or False, 'python', 'cpp' or 'all', not {given!r}")
