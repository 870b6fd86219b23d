"""The public Python API: signatures and docstrings."""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import json
import re
from types import ModuleType
from typing import TYPE_CHECKING, Any, ForwardRef

import pytest_opprof
from opprof_docs.docstrings import doc_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

_COLUMNS = 100


def api_lines(*names: str) -> Iterator[str]:
    """A section for each name, and a subsection for each method and property.

    Args:
        names: Names without ``pytest_opprof.``; a module stands for everything in its ``__all__``.
    """
    for name in names:
        value = _named(name)
        if isinstance(value, ModuleType):
            yield from doc_lines(value.__doc__ or "")
            for each in value.__all__:
                yield from _section("###", f"{name}.{each}", getattr(value, each))
        else:
            yield from _section("###", name, value)
            if inspect.isclass(value):
                yield from _members(name, value)
    yield ""


def _named(name: str) -> Any:
    module, _, last = f"pytest_opprof.{name}".rpartition(".")
    value = getattr(importlib.import_module(module), last, None)
    return importlib.import_module(f"{module}.{last}") if value is None else value


def _section(level: str, name: str, value: Any) -> Iterator[str]:
    yield from ("", f"{level} `{name}`", "", "```py", _declaration(name.rpartition(".")[2], value), "```")
    if callable(value) or _is_property(value):
        yield from doc_lines(value.__doc__ or "")
    if isinstance(value, enum.EnumType):
        yield from ("", f"Members: {', '.join(f'`{member}`' for member in value.__members__)}")


def _members(name: str, owner: type) -> Iterator[str]:
    """A class's members, including those inherited from our private classes."""
    public = {id(getattr(pytest_opprof, each)): each for each in pytest_opprof.__all__ if each != name}
    seen = set()
    for base in owner.__mro__:
        if not base.__module__.startswith("pytest_opprof"):
            continue
        if id(base) in public:
            yield from ("", f"The rest is that of `{public[id(base)]}`.")
            return
        for attribute, member in vars(base).items():
            value = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            is_shown = value.__doc__ and (inspect.isfunction(value) or _is_property(value))
            if is_shown and not attribute.startswith("_") and attribute not in seen:
                seen.add(attribute)
                yield from _section("####", f"{name}.{attribute}", value)


def _is_property(value: Any) -> bool:
    return isinstance(value, property | functools.cached_property)


def _declaration(name: str, value: Any) -> str:
    if _is_property(value):
        getter: Any = value.fget if isinstance(value, property) else value.func
        return f"{name}: {_annotation(inspect.signature(getter).return_annotation)!r}"
    if isinstance(value, enum.EnumType):
        return f"class {name}({value.__bases__[-1].__name__})"
    if inspect.isclass(value):
        return f"class {name}{_signature(value)}"
    return f"def {name}{_signature(value)}" if callable(value) else f"{name} = {json.dumps(value)}"


def _signature(value: Any) -> str:
    """The signature, with a line for each argument if it is too long for one line."""
    try:
        signature = inspect.signature(value)
    except ValueError:  # a C class without a signature
        return ""
    parameters = [
        one.replace(annotation=_annotation(one.annotation), default=_default(one.default))
        for name, one in signature.parameters.items()
        if name not in {"self", "cls"}
    ]
    returned = inspect.Signature.empty if inspect.isclass(value) else signature.return_annotation
    text = str(inspect.Signature(parameters, return_annotation=_annotation(returned)))
    if len(text) <= _COLUMNS:
        return text
    for one in parameters[1:]:
        text = text.replace(f", {one}", f",\n    {one}", 1)
    inside, end, behind = text[1:].rpartition(") -> ") if ") -> " in text else (text[1:-1], ")", "")
    # The bare asterisk gets its own line too.
    inside = re.sub(r"(?:^|,)\s*\*,\s*", lambda sign: f"{sign[0][:1].strip('* ')}\n    *,\n    ", inside)
    return f"(\n    {inside.strip()},\n{end}{behind}"


class _Written(str):
    """Text that `inspect` prints without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _annotation(value: Any) -> Any:
    """The annotation as in the source, on every Python version."""
    if isinstance(value, ForwardRef):
        return _Written(value.__forward_arg__)
    # An `InitVar` is an argument, not a field: show its type.
    return _Written(re.sub(r"^InitVar\[(.+)]$", r"\1", value)) if isinstance(value, str) else value


def _default(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return _Written(f"{type(value).__name__}.{value.name}")
    return _Written("...") if repr(value).startswith("<") and value is not inspect.Parameter.empty else value
