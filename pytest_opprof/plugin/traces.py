"""Chrome traces of measured tests, as files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pytest_opprof.capture.recording import Recording
from pytest_opprof.errors import StoreError

_LONGEST_NAME: Final = 80


def write_traces(folder: Path, node_id: str, recordings: Sequence[Recording]) -> list[Path]:
    """Write a trace of each cycle of a test.

    Returns:
        The files: ``test_encoder_step-9f3c.json.gz``, with the cycle's number where there are several.

    Raises:
        StoreError: A file cannot be written.
    """
    name = node_id.rpartition("::")[2]
    plain = re.sub(r"[^0-9A-Za-z_.-]+", "_", name)[:_LONGEST_NAME]
    digest = hashlib.sha256(node_id.encode("utf-8", "surrogatepass")).hexdigest()[:4]
    paths = []
    for number, recording in enumerate(recordings):
        cycle = f".cycle{number}" if len(recordings) > 1 else ""
        path = folder / f"{plain}-{digest}{cycle}.json.gz"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            recording.write_chrome_trace(path)
        except OSError as error:
            raise StoreError(f"the trace {path} cannot be written: {error}") from error
        paths.append(path)
    return paths
