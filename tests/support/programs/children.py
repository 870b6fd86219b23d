"""Python programs run in their own processes, and their results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DEADLINE_S = 120


def run_python(
    program: str,
    *,
    environment: Mapping[str, str | None] | None = None,
    cwd: Path | None = None,
    python: str = sys.executable,
) -> subprocess.CompletedProcess[str]:
    """Run a program with warnings as errors; None removes a variable from its environment."""
    variables = dict(os.environ)
    for name, value in (environment or {}).items():
        variables.pop(name, None)
        if value is not None:
            variables[name] = value
    return subprocess.run(
        [python, "-W", "error", "-c", textwrap.dedent(program)],
        env=variables,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )


def answer_of(
    program: str, *, environment: Mapping[str, str | None] | None = None, cwd: Path | None = None
) -> Any:
    """The JSON that a program prints last; it must succeed and print nothing on standard error."""
    done = run_python(program, environment=environment, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
