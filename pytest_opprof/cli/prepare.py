"""``opprof prepare``: build the torch observer ahead, for images that have no compiler later."""

from __future__ import annotations

import argparse
import importlib.util
import time

from pytest_opprof.errors import CaptureUnavailableError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tell the command line of this command."""
    subparsers.add_parser(
        "prepare", help="build the torch observer now, rather than in the first profiled test"
    )


def run(_args: argparse.Namespace) -> int:
    """Build it, or say that it is there.

    Raises:
        CaptureUnavailableError: torch is not installed, or the observer cannot be built.
    """
    if importlib.util.find_spec("torch") is None:
        raise CaptureUnavailableError("torch is not installed here: there is nothing to prepare")
    import torch  # noqa: PLC0415  # slow, and asked for by this command only

    from pytest_opprof.capture.observer_build import observer_for  # noqa: PLC0415

    started = time.perf_counter()
    observer = observer_for(torch)
    how = f"built in {time.perf_counter() - started:.1f} s" if observer.was_built else "was there already"
    print(f"observer for torch {torch.__version__} {how}: {observer.path}")
    return 0
