"""What a page holds: data as JSON that no HTML parser takes for markup, its style, script and policy."""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from typing import Any

# In a script element only `<` could end it; escaping the others costs little and is safe.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
_LEVEL = 6
_RANGE = ("sum", "min", "max")  # samples as summarized in a document


def script_json(value: Any) -> str:
    r"""JSON to stand in a script element.

    >>> script_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)


def packed_json(value: Mapping[str, Any]) -> str:
    """JSON as gzip in base64, a JSON string itself; the same value gives the same text."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return json.dumps(base64.b64encode(gzip.compress(text.encode("ascii"), _LEVEL, mtime=0)).decode("ascii"))


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A document's rows as columns, which take two thirds of the rows' space when packed.

    A column is a list of values, null for what a row lacks; of text ``{"words", "at"}``, each word once; of
    samples ``{"sum", "min", "max"}``, with null for the last two where the first is the value itself.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {
        "length": len(rows),
        "columns": {name: _column([row.get(name) for row in rows]) for name in names},
    }


def _column(values: list[Any]) -> Any:
    if all(value is None or isinstance(value, str) for value in values):
        places = {word: place for place, word in enumerate(dict.fromkeys(values))}
        return {"words": list(places), "at": [places[value] for value in values]}
    if any(isinstance(value, dict) and tuple(value) == _RANGE for value in values):
        ranges = [value if isinstance(value, dict) else {"sum": value} for value in values]
        return {part: [value.get(part) for value in ranges] for part in _RANGE}
    return values


def style_and_script(scripts: Sequence[str]) -> dict[str, str]:
    """A page's style, its scripts as one (each uses those above), and the policy that allows only these."""
    files = importlib.resources.files(__package__)
    style = files.joinpath("page.css").read_text(encoding="utf-8")
    parts = [files.joinpath("scripts", f"{name}.js").read_text(encoding="utf-8") for name in scripts]
    # Wrapped in a function, so that nothing is reachable from outside.
    script = '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"
    rules = (
        "default-src 'none'",
        f"script-src '{_hash(script)}'",
        f"style-src '{_hash(style)}'",
        "img-src data:",  # the icon, which is empty: without one a browser asks the server for it
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
    return {"style": style, "script": script, "policy": "; ".join(rules)}


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}"
