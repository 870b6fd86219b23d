"""Zips as workflow runs upload them, and malicious ones."""

import io
import json
import zipfile
from typing import Any

DOCUMENT = "opprof-run.json"


def zip_of(*files: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip with these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return buffer.getvalue()


def artifact_of(document: Any) -> bytes:
    """A run file's zip as upload-artifact makes it."""
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return zip_of((DOCUMENT, data))


def member(name: str = DOCUMENT, *, mode: int) -> zipfile.ZipInfo:
    """A file of a zip with a Unix mode: its type and permissions."""
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    return info
