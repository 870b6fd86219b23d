"""Find this machine's C++ compiler, and run it within limits."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

from pytest_opprof.children import send, started
from pytest_opprof.errors import CaptureUnavailableError

_COMPILERS: Final = ("c++", "g++", "clang++")
_LIMIT_VARIABLE: Final = "OPPROF_COMPILE_TIMEOUT"
_LIMIT_S: Final = 300.0
_PROBE_S: Final = 20.0
_KEPT_OUTPUT: Final = 1 << 20  # bytes; the first error says most
_YEAR: Final = {"c++17": "201703L", "c++20": "202002L", "c++23": "202302L"}


def compiler() -> str | None:
    """The C++ compiler to use: ``$CXX``, or the first usual name on PATH; None if there is none."""
    named = os.environ.get("CXX", "").strip()
    if named:
        return named if shutil.which(words(named)[0]) else None
    return next(filter(None, map(shutil.which, _COMPILERS)), None)


def words(command: str) -> list[str]:
    """A command's words, as a shell splits them; the whole command if a closing quote is missing."""
    try:
        return shlex.split(command) or [command]
    except ValueError:
        return [command]


def identity(program: str) -> str:
    """A text that identifies a compiler and its options, without running it."""
    found = Path(shutil.which(words(program)[0]) or "").resolve()
    stat = found.stat()
    return f"{program} {found} {stat.st_size} {int(stat.st_mtime)}"


def time_limit_s() -> float:
    """How long one run of the compiler may take, seconds: ``OPPROF_COMPILE_TIMEOUT``, or five minutes."""
    said = os.environ.get(_LIMIT_VARIABLE, "")
    with contextlib.suppress(ValueError):
        limit = float(said or _LIMIT_S)
        if 0 < limit < float("inf"):
            return limit
    raise CaptureUnavailableError(
        f"{_LIMIT_VARIABLE}={said} is invalid: give a number of seconds, such as 600"
    )


def fault_of(command: list[str], out: Path, *, limit_s: float) -> str | None:
    """Compile; one line why it failed, None if it succeeded; an `OSError` if the compiler does not start."""
    process = started(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        said = _output(process, deadline=time.monotonic() + limit_s)
    finally:
        ended_by_itself = process.poll() is not None
        send(process, signal.SIGKILL)
        status = process.wait()
    if said is None or not ended_by_itself:
        return (
            f"it was stopped after {limit_s:g} s without a result (is this machine slow? "
            f"Set {_LIMIT_VARIABLE} to more seconds)"
        )
    if status != 0:
        return _worst_line(said) or f"it ended with status {status} and no message"
    return None if out.is_file() else "it ended with status 0 and wrote no file"


def _output(process: subprocess.Popen[bytes], *, deadline: float) -> str | None:
    """The start of its output, once it has ended; None if it has not by the deadline."""
    assert process.stdout is not None
    kept = bytearray()
    with selectors.DefaultSelector() as selector, process.stdout as stream:
        selector.register(stream, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0 and selector.select(left):
            chunk = os.read(stream.fileno(), 1 << 16)
            if not chunk:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=max(0.0, deadline - time.monotonic()))
                return kept.decode(errors="replace")
            kept += chunk[: _KEPT_OUTPUT - len(kept)]
    return None


def _worst_line(said: str) -> str:
    """The line of a failed compiler's output that says most, cut to 300 characters."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[0] if lines else "")[:300]


def lacks_standard(program: str, standard: str, *, folder: Path) -> bool:
    """Whether a working compiler lacks a C++ standard, such as ``c++20``, or knows only a part of it."""
    source, out = folder / "standard.cpp", folder / "standard.o"
    command = [*words(program), "-c", str(source), "-o", str(out)]
    limit_s = min(time_limit_s(), _PROBE_S)
    source.write_text("\n", encoding="ascii")
    if fault_of(command, out, limit_s=limit_s) is not None:
        return False
    source.write_text(f"static_assert(__cplusplus >= {_YEAR[standard]});\n", encoding="ascii")
    return fault_of([*command, f"-std={standard}"], out, limit_s=limit_s) is not None
