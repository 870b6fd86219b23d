"""Runs one side of a comparison in a process of its own, where the other's imports and state are not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
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
