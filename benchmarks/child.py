"""Runs one side of a comparison in a process of its own, without the other side's imports and state."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def environment(added: Mapping[str, str]) -> dict[str, str]:
    """A child's environment: one thread, and bytecode is cached, as it is for users."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "OMP_NUM_THREADS": "1", **added}


def measured(module: str, *arguments: str, added: Mapping[str, str] = _NOTHING) -> Any:
    """Run ``python -m benchmarks.<module> <arguments>`` and parse the last line that it prints, as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(added),
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def least(
    module: str, sides: Sequence[str], *arguments: str, rounds: int, added: Mapping[str, str] = _NOTHING
) -> list[dict[str, float]]:
    """Each side's smallest value of each figure over some rounds, in which the sides take turns."""
    rows = [[measured(module, side, *arguments, added=added) for side in sides] for _ in range(rounds)]
    columns = zip(*rows, strict=True)
    return [{figure: min(one[figure] for one in side) for figure in side[0]} for side in columns]


def processor_time_s(command: Sequence[str], *, folder: str, added: Mapping[str, str]) -> float:
    """The user and system time, in seconds, of a command and the child processes that it waited for.

    Raises:
        subprocess.CalledProcessError: The command failed.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(added),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_utime + used.ru_stime
