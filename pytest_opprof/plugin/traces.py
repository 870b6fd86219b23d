"""Chrome traces of measured tests, as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_opprof.capture.recording import Recording
from pytest_opprof.errors import StoreError
from pytest_opprof.results.names import trace_stem


def write_traces(folder: Path, node_id: str, recordings: Sequence[Recording]) -> list[Path]:
    """Write a trace of each cycle of a test.

    Returns:
        The files: ``test_encoder_step-9f3c.json.gz``, with the cycle's number where there are several.

    Raises:
        StoreError: A file cannot be written.
    """
    stem = trace_stem(node_id)
    paths = []
    for number, recording in enumerate(recordings):
        cycle = f".cycle{number}" if len(recordings) > 1 else ""
        path = folder / f"{stem}{cycle}.json.gz"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            recording.write_chrome_trace(path)
        except OSError as error:
            raise StoreError(f"the trace {path} cannot be written: {error}") from error
        paths.append(path)
    return paths
