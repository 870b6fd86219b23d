"""Run processes under QEMU's user mode, which counts their machine instructions: `opprof replay`."""

from __future__ import annotations

import ctypes
import os
import platform
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from typing import Final

from pytest_opprof.capture.folders import temporary_folder
from pytest_opprof.capture.injection import library_path
from pytest_opprof.errors import CaptureUnavailableError

# CPU features for kernels, which QEMU's user mode lacks: without this each start warns about them.
_NOT_EMULATED: Final = "-pcid,-x2apic,-tsc-deadline,-invpcid,-spec-ctrl"
QEMU: Final = "qemu-x86_64"
COUNTS: Final = "OPPROF_REPLAY_COUNTS"
_COMMAND: Final = "OPPROF_REPLAY_COMMAND"
_GUEST: Final = "OPPROF_REPLAY_CPU"
_NO_RANDOM_ADDRESSES: Final = 0x0040000  # of personality(2)
_ONE_THREAD: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_NEEDED: Final = (
    "It needs QEMU 4.2 to 8.2, in user mode with plugins (Debian 12: apt install qemu-user). "
    "Elsewhere run it in a container such as python:3.13-bookworm"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """How processes are run under QEMU."""

    command: tuple[str, ...]  # what comes before a program and its arguments
    cpu: str  # the CPU model that they see

    @classmethod
    def here(cls) -> Replay | None:
        """How `opprof replay` started this process; None if it did not."""
        text = os.environ.get(_COMMAND)
        return cls(command=tuple(shlex.split(text)), cpu=os.environ.get(_GUEST, "")) if text else None

    @classmethod
    def on(cls, cpu: str) -> Replay:
        """Prepare to run programs on this CPU model; a `CaptureUnavailableError` if this machine cannot."""
        if (found := platform.machine()) != "x86_64":
            raise CaptureUnavailableError(f"opprof replay runs only on x86-64, and this machine is {found}")
        program = shutil.which(QEMU)
        if program is None:
            raise CaptureUnavailableError(f"opprof replay needs {QEMU}, which was not found. {_NEEDED}")
        plugin = str(library_path().with_name("_replay.so")).replace(",", ",,")
        command = (program, "-cpu", f"{cpu},{_NOT_EMULATED}", "-plugin", plugin)
        nothing = shutil.which("true") or "/bin/true"
        trial = subprocess.run([*command, nothing], capture_output=True, text=True, check=False)
        if trial.returncode:
            said = next(iter(trial.stderr.splitlines()), f"it exited with {trial.returncode}")
            raise CaptureUnavailableError(
                f"{program} cannot count the instructions of the CPU {cpu!r}: {said}. {_NEEDED}"
            )
        return cls(command=command, cpu=cpu)

    @property
    def guest(self) -> str:
        """What machine instructions depend on besides the code: the CPU and the C library."""
        return f"{self.cpu}, {' '.join(platform.libc_ver())}"

    def environment(self) -> dict[str, str]:
        """The environment variables of its processes, including those that make counts repeatable."""
        folder = temporary_folder()
        if folder is None:
            raise CaptureUnavailableError(
                "opprof replay needs a folder for temporary files: set TMPDIR to one that can be written"
            )
        return {
            COUNTS: f"{folder}/opprof-replay",
            _COMMAND: shlex.join(self.command),
            _GUEST: self.cpu,
            "PYTHONHASHSEED": "0",
            **dict.fromkeys(_ONE_THREAD, "1"),
        }


def keep_addresses() -> None:
    """Turn off address randomization for programs that this process starts, if allowed."""
    libc = ctypes.CDLL(None)
    now = libc.personality(0xFFFFFFFF)
    if now >= 0:
        libc.personality(now | _NO_RANDOM_ADDRESSES)
