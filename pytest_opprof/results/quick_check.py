"""A schema as Python closures: the same answer as jsonschema's, yes or no, at a fraction of its cost.

A run of many tests has very many small objects, and all are checked when a session starts. So a schema is
compiled once, and jsonschema is asked only about refused documents, to say what is wrong and where. An
unknown keyword fails at once, so that no rule is ever skipped; `tests/unit/results/test_quick_check.py` holds
both to one answer.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Check: TypeAlias = "Callable[[Any], bool]"

_TYPES: Mapping[str, type] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "null": type(None),
}
_ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description", "default"}
_OF_STRINGS = {"minLength", "maxLength", "pattern"}
_OF_INTEGERS = {"minimum", "maximum"}
_OF_ARRAYS = {"items", "minItems", "maxItems"}
_OF_OBJECTS = {"required", "properties", "additionalProperties", "propertyNames", "maxProperties"}
_ANYWHERE = {"type", "enum", "const", "anyOf", "$ref"}
_KNOWN = _ANNOTATIONS | _OF_STRINGS | _OF_INTEGERS | _OF_ARRAYS | _OF_OBJECTS | _ANYWHERE


class QuickCheck:
    """A compiled schema."""

    def __init__(self, schema: Mapping[str, Any], *, others: Mapping[str, Mapping[str, Any]]) -> None:
        """Compile a schema.

        Args:
            schema: A schema that uses only the keywords known here.
            others: The schemas it refers to, itself among them, by their ``$id``.
        """
        self._schemas = others
        self._compiled: dict[str, Check] = {}
        self.accepts: Check = self._check(schema, home=schema["$id"])

    def _check(self, schema: Any, *, home: str) -> Check:
        if isinstance(schema, bool):
            return _anything if schema else _nothing
        unknown = set(schema) - _KNOWN
        assert not unknown, f"a schema uses {unknown}, which is not compiled yet"
        checks: list[Check] = []
        if "$ref" in schema:
            checks.append(self._referred(schema["$ref"], home=home))
        if "enum" in schema or "const" in schema:
            checks.append(_one_of(schema.get("enum", [schema.get("const")])))
        if "anyOf" in schema:
            branches = [self._check(branch, home=home) for branch in schema["anyOf"]]
            checks.append(lambda value: any(branch(value) for branch in branches))
        of_type: dict[type, Check] = {
            str: _string_check(schema),
            int: _integer_check(schema),
            list: self._array_check(schema, home=home),
            dict: self._object_check(schema, home=home),
        }
        if "type" in schema:
            names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
            of_type = {_TYPES[name]: of_type.get(_TYPES[name], _anything) for name in names}
            checks.append(lambda value: of_type.get(type(value), _nothing)(value))
        elif not _ANYWHERE.isdisjoint(schema):
            assert set(schema) <= _ANYWHERE | _ANNOTATIONS, "a rule for one type stands where no type does"
        else:
            checks.append(lambda value: of_type.get(type(value), _anything)(value))
        return checks[0] if len(checks) == 1 else lambda value: all(check(value) for check in checks)

    def _referred(self, reference: str, *, home: str) -> Check:
        name, _, pointer = reference.partition("#")
        place = f"{name or home}#{pointer}"
        if place not in self._compiled:
            schema: Any = self._schemas[name or home]
            for part in pointer.split("/")[1:]:
                schema = schema[part]
            self._compiled[place] = self._check(schema, home=name or home)
        return self._compiled[place]

    def _array_check(self, schema: Mapping[str, Any], *, home: str) -> Check:
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        item = self._check(schema.get("items", True), home=home)
        return lambda value: least <= len(value) <= most and all(map(item, value))

    def _object_check(self, schema: Mapping[str, Any], *, home: str) -> Check:
        known = {name: self._check(part, home=home) for name, part in schema.get("properties", {}).items()}
        required = frozenset(schema.get("required", ()))
        name_check = self._check(schema["propertyNames"], home=home) if "propertyNames" in schema else None
        most = schema.get("maxProperties", math.inf)
        other = self._check(schema.get("additionalProperties", True), home=home)

        def check(value: dict[str, Any]) -> bool:
            if not required <= value.keys() or len(value) > most:
                return False
            if name_check is not None and not all(map(name_check, value)):
                return False
            return all(known.get(name, other)(part) for name, part in value.items())

        return check


def _anything(_: Any) -> bool:
    return True


def _nothing(_: Any) -> bool:
    return False


def _one_of(values: list[Any]) -> Check:
    assert all(value is None or isinstance(value, str) for value in values), "1 and True are equal here"
    allowed = frozenset(values)
    return lambda value: (value is None or isinstance(value, str)) and value in allowed


def compiled(pattern: str) -> re.Pattern[str]:
    """A schema's pattern by ECMA-262, in which ``$`` is the end: Python lets a newline follow."""
    return re.compile(re.sub(r"\$$", r"\\Z", pattern))


def _string_check(schema: Mapping[str, Any]) -> Check:
    least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
    search = compiled(schema["pattern"]).search if "pattern" in schema else _anything
    return lambda value: least <= len(value) <= most and bool(search(value))


def _integer_check(schema: Mapping[str, Any]) -> Check:
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    return lambda value: least <= value <= most
