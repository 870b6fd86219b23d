"""A busy neighbour: a process that computes and sleeps at random, until its parent exits."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator

_LONGEST_S = 0.1


@contextlib.contextmanager
def neighbour() -> Iterator[None]:
    """Run a busy neighbour during the measurement."""
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.gates.neighbour"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Compute and sleep by turns, while the parent lives."""
    chance = random.Random()  # noqa: S311 - neighbours are not reproducible
    parent = os.getppid()
    block = bytearray(8_000_000)  # more than the nearer caches hold
    while os.getppid() == parent:
        until = time.monotonic() + chance.uniform(0, _LONGEST_S)
        while time.monotonic() < until:
            block[:] = bytes(block)
        time.sleep(chance.uniform(0, _LONGEST_S))


if __name__ == "__main__":
    main()
