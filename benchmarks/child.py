"""Runs one side of a comparison in a process of its own, where the other's imports and state are not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def measured(module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Any:
    """What ``python -m benchmarks.<module> <arguments>`` printed as its last line, which is JSON."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def processor_time_s(command: Sequence[str], *, folder: str, environment: Mapping[str, str]) -> float:
    """The processor time of a command and of all that it waited for, in seconds.

    Args:
        command: The program and its arguments.
        folder: Where it starts.
        environment: Variables beside those of this process.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_utime + used.ru_stime
