"""The JSON schemas: each field, its type and its meaning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opprof_docs.measured import UNITS
from opprof_docs.tables import code, table
from pytest_opprof.metrics import COUNT, ROW_METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCHEMAS = Path(__file__).parents[2] / "schemas"
_CAPS = (
    ("minimum", "from {}"),
    ("maximum", "to {}"),
    ("maxLength", "{} characters at most"),
    ("minItems", "{} items or more"),
    ("maxItems", "{} items at most"),
    ("maxProperties", "{} members at most"),
)


def with_metrics(text: str) -> str:
    """The text of run.schema.json, with the row metrics taken from `ROW_METRICS`."""
    schema = json.loads(text)
    schema["$defs"]["op"]["properties"]["metrics"] = {
        "description": "By name; a metric that is 0 in each step, or was not recorded, is absent.",
        "type": "object",
        "required": [COUNT.name],
        "maxProperties": 100,
        "propertyNames": {"type": "string", "maxLength": 64, "pattern": "^[a-z][a-z0-9_]*$"},
        "properties": {
            name: {
                "$ref": f"#/$defs/{'changes' if metric.is_signed else 'samples'}",
                "description": f"{metric.label}, in {UNITS[metric.unit]}",
            }
            for name, metric in ROW_METRICS.items()
        },
        "additionalProperties": {"$ref": "#/$defs/changes"},
    }
    return json.dumps(schema, indent=2) + "\n"


def schema_lines() -> Iterator[str]:
    """A section for each schema, and a subsection for each of its definitions."""
    for path in sorted(SCHEMAS.glob("*.schema.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        yield f"## {schema['title']}"
        yield ""
        yield f"`schemas/{path.name}`, `{schema['$id']}`. {schema['description']}"
        yield from _fields(schema)
        for name, part in schema["$defs"].items():
            yield f"### {name} of {path.name.partition('.')[0]}"
            yield ""
            yield part.get("description", "")
            yield from _part(part)


def _part(part: Mapping[str, Any]) -> Iterator[str]:
    """The fields of a definition, or its alternatives."""
    if "properties" in part:
        yield from _fields(part)
    else:
        yield ""
        yield f"{_kind(part)}."
        yield ""
        for choice in part.get("anyOf", ()):
            if "properties" in choice:
                yield from _fields(choice)


def _fields(part: Mapping[str, Any]) -> Iterator[str]:
    required = set(part.get("required", ()))
    return table(
        ("field", "", "holds", "meaning"),
        (
            (
                code(name),
                "always" if name in required else "may be absent",
                _kind(field),
                field.get("description", ""),
            )
            for name, field in part.get("properties", {}).items()
        ),
    )


def _kind(field: Mapping[str, Any]) -> str:
    """A field's type and bounds, in words."""
    if "$ref" in field:
        target = field["$ref"]
        of_run = ":run:" in target
        return f"{code(target.rpartition('/')[2])}{' of a run' if of_run else ''}"
    if "anyOf" in field:
        return " or ".join(_kind(choice) for choice in field["anyOf"])
    if "const" in field:
        return code(json.dumps(field["const"]))
    if "enum" in field:
        return ", ".join(code(json.dumps(value)) for value in field["enum"])
    caps = [text.format(f"{field[name]:,}") for name, text in _CAPS if name in field]
    caps += ["not empty"] if field.get("minLength") else []
    caps += [code(field["pattern"])] if "pattern" in field else []
    inner = f" of {_kind(field['items'])}" if isinstance(field.get("items"), dict) else ""
    if isinstance(field.get("additionalProperties"), dict):
        inner = f" of {_kind(field['additionalProperties'])}"
    return f"{field.get('type', 'anything')}{inner}" + (f" ({', '.join(caps)})" if caps else "")
