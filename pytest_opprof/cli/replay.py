"""``opprof replay``: run pytest under QEMU's user mode, which counts a marked test's machine instructions."""

from __future__ import annotations

import argparse
import os
import sys

HELP = "run pytest under QEMU, which counts the machine instructions of each marked test"
EXAMPLE = "opprof replay tests/test_model.py --opprof-baseline=native"

_CPU = "Haswell-v4"  # with AVX2, as most machines of the last ten years


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.allow_abbrev = False
    parser.description = (
        "Everything takes many times as long; the tests see the same CPU model on every machine. "
        "Save a baseline with --opprof-save, compare with --opprof-baseline: pytest gets its arguments. "
        "Needs x86-64 and QEMU's user mode with plugins (Debian 12: apt install qemu-user)."
    )
    parser.add_argument(
        "--cpu", default=_CPU, metavar="MODEL", help="the CPU that the tests see (default: %(default)s)"
    )
    parser.set_defaults(pytest_args=[])


def run(args: argparse.Namespace) -> int:
    """Replace this process with pytest under QEMU."""
    from pytest_opprof.capture.replay import Replay, keep_addresses

    replay = Replay.on(args.cpu)
    keep_addresses()
    sys.stdout.flush()
    command = [*replay.command, sys.executable, "-m", "pytest", *args.pytest_args]
    environment = {**os.environ, **replay.environment()}
    os.execve(command[0], command, environment)  # noqa: S606 - signals and exit code are pytest's own
