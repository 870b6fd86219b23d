"""Ready-made ``on_trace_ready`` handlers."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class ExportsTrace(Protocol):
    """The part of a profiler that a handler needs to write a trace."""

    def export_chrome_trace(self, path: str) -> None:
        """Write the finished cycle."""


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str],
    worker_name: str | None = None,
    use_gzip: bool = False,  # noqa: FBT001, FBT002  # torch's signature
    use_python_export: bool = False,  # noqa: FBT001, FBT002  # torch's signature
) -> Callable[[ExportsTrace], None]:
    """Write each cycle's trace into a directory, under the names that TensorBoard and HTA look for.

    The files are called ``<worker>.<nanoseconds since the epoch>.pt.trace.json``, or ``.json.gz``.

    Args:
        dir_name: The directory; it is made when the first trace is written.
        worker_name: The worker's name, unique in its job (default: ``<host>_<pid>``).
        use_gzip: Compress the files.
        use_python_export: Accepted with a warning, but has no effect.
    """
    warn_of_python_export(asked=use_python_export)

    def handler(profiler: ExportsTrace) -> None:
        nonlocal worker_name
        directory = Path(dir_name)
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {directory} ({error.strerror})") from error
        if not worker_name:
            import socket  # noqa: PLC0415  # for this name only

            worker_name = f"{socket.gethostname()}_{os.getpid()}"
        suffix = ".pt.trace.json.gz" if use_gzip else ".pt.trace.json"
        # Torch's own profile, and a class written for it, need a string.
        profiler.export_chrome_trace(str(directory / f"{worker_name}.{time.time_ns()}{suffix}"))

    return handler


def warn_of_python_export(*, asked: bool) -> None:
    """Warn that ``use_python_export`` has no effect."""
    if asked:
        warnings.warn("use_python_export: accepted, but has no effect", stacklevel=3)
