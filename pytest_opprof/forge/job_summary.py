"""The page of a job of GitHub Actions, to which each step may add."""

from __future__ import annotations

from pathlib import Path

from pytest_opprof.results.files import store_error


def append_summary(path: Path | None, text: str) -> None:
    """Add to the summary of the job.

    Args:
        path: Of ``GITHUB_STEP_SUMMARY``; None where the job has no summary.
        text: Markdown.

    Raises:
        StoreError: It cannot be written.
    """
    if path is None:
        return
    try:
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{text.rstrip()}\n\n")
    except OSError as error:
        raise store_error(path, "cannot be written", error) from error
