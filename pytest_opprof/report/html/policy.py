"""What a page may do: its own style and script, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
from collections.abc import Sequence


def style_text() -> str:
    """The style of all pages."""
    return importlib.resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")


def script_text(names: Sequence[str]) -> str:
    """The scripts of a page as one; each uses those above it."""
    files = importlib.resources.files(__package__)
    parts = [files.joinpath("scripts", f"{name}.js").read_text(encoding="utf-8") for name in names]
    # Wrapped in a function, so that nothing is reachable from outside.
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


def policy(*, script: str, style: str) -> str:
    """The content security policy that allows only these two."""
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
    return "; ".join(rules)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}"
