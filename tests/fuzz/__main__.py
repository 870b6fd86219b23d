"""``python -m fuzz``, which `make fuzz` runs: every reader in turn, each led by the code that an input reaches.

Readers in Python run under atheris, those in C as programs of their own: by clang's libFuzzer, or by our own driver
where gcc alone built them. What was found lies in build/fuzz, where each reader's inputs are kept for the next time.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fuzz.catalog import NAMES, target_of
from fuzz.target import CORPORA

_BUILD: Final = Path("build", "fuzz")
# An input is one or more files, in memory if possible.
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the folder in it is made new
# Limits of an input: its time and its memory.
_MOST_SECONDS: Final = 20
_MOST_MEGABYTES: Final = 1_024
_LONGEST_INPUT: Final = 32_768
# The table of names is process-wide and only grows, so a new process starts after this many inputs.
_MOST_INPUTS: Final = 200_000
# A crashed reader continues with other inputs; one that crashes each time is stopped here.
_MOST_FINDINGS: Final = 3
_IN_C: Final = {"trace-in-c": "trace", "session-in-c": "session"}
_UNITS: Final = re.compile(r"^stat::number_of_executed_units:\s*(\d+)|^(\d+) inputs, ", re.MULTILINE)
_REACHED: Final = re.compile(r"\bcov: (\d+)|\b(\d+) edges$", re.MULTILINE)
_ERROR: Final = re.compile(
    r"^(?:[\w.]+(?:Error|Exception|Exit|Interrupt)\b.*|.*(?:ERROR: |does not hold|runtime error).*)",
    re.MULTILINE,
)


@dataclass(slots=True, kw_only=True)
class Tried:
    """The result of one reader so far: the inputs, the places in the code that they reached, the findings."""

    started: float = field(default_factory=time.monotonic)
    inputs: int = 0
    reached: int = 0
    findings: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started


def main(arguments: Sequence[str] | None = None) -> int:
    args = _arguments(arguments)
    if args.input is not None:
        return _one_input(args.target, args.input)
    print(f"{'reader':16}{'seconds':>9}{'inputs':>12}{'reached':>9}  findings", flush=True)
    findings = 0
    for name in args.target:
        tried = _tried(name, args.native, args.seconds / len(args.target))
        findings += len(tried.findings)
        told = len(tried.findings) or "none"
        print(f"{name:16}{tried.seconds:9.0f}{tried.inputs:12,}{tried.reached:9,}  {told}", flush=True)
        for finding in tried.findings:
            print(f"    {finding}", flush=True)
    return int(findings > 0)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="for all readers together; default: 600")
    parser.add_argument(
        "--target", action="append", metavar="NAME", help="this reader alone; may be repeated"
    )
    parser.add_argument("--native", type=Path, metavar="DIR", help="where the programs of readers in C are")
    parser.add_argument(
        "--input", type=Path, metavar="FILE", help="give a reader in Python this, and no other"
    )
    args = parser.parse_args(arguments)
    known = [*NAMES, *(_IN_C if args.native else ())]
    args.target = args.target or known
    if unknown := [name for name in args.target if name not in known]:
        parser.error(f"no reader {unknown[0]!r}; there are {', '.join(known)}")
    return args


def _one_input(names: Sequence[str], path: Path) -> int:
    for name in names:
        folder = _BUILD / name / "input"
        folder.mkdir(parents=True, exist_ok=True)
        accepted = target_of(name).attempt(path.read_bytes(), folder)
        print(f"{name}: {'accepted' if accepted else 'refused'}")
    return 0


def _tried(name: str, native: Path | None, seconds: float) -> Tried:
    """Run one reader, again after each finding, while there is time."""
    folder, tried = (_BUILD / name).absolute(), Tried()
    (folder / "inputs").mkdir(parents=True, exist_ok=True)
    while seconds - tried.seconds > 0 and len(tried.findings) < _MOST_FINDINGS:
        known = set(folder.iterdir())
        command = _command(name, native, folder, max(round(seconds - tried.seconds), 1))
        memory = _MEMORY if _MEMORY.is_dir() else None
        with tempfile.TemporaryDirectory(dir=memory, prefix="opprof-fuzz-") as files:
            environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1", "TMPDIR": files}
            done = subprocess.run(
                command, cwd=_run_in(name, folder), env=environment, capture_output=True, check=False
            )
        told = (done.stdout + done.stderr).decode("utf-8", "replace")
        (folder / "log").write_text(told, encoding="utf-8")
        tried.inputs += max(_numbers(_UNITS, told), default=0)
        tried.reached = max(tried.reached, *_numbers(_REACHED, told), 0)
        if done.returncode:
            what = _ERROR.findall(told) or [f"ended with {done.returncode}: {folder / 'log'}"]
            found = sorted(path.name for path in set(folder.iterdir()) - known - {folder / "log"})
            tried.findings.append(f"{what[0][:200]} ({', '.join(found)} in {folder})")
    return tried


def _numbers(pattern: re.Pattern[str], told: str) -> Iterator[int]:
    return (int(one or other) for one, other in pattern.findall(told))


def _run_in(name: str, folder: Path) -> Path | None:
    """The folder to run in: a program of ours leaves its finding there."""
    return folder if name in _IN_C else None


def _command(name: str, native: Path | None, folder: Path, seconds: int) -> list[str]:
    corpus = CORPORA / _IN_C.get(name, name)
    program = [sys.executable, "-m", "fuzz.child", name]
    if name in _IN_C and native is not None:
        program = [str((native / f"libfuzzer_{corpus.name}").absolute())]
        if not Path(program[0]).exists():
            chance = str(time.time_ns())
            return [str((native / f"fuzz_{corpus.name}").absolute()), str(corpus), str(seconds), chance]
    return [
        *program,
        *(f"-max_total_time={seconds}", f"-runs={_MOST_INPUTS}", f"-max_len={_LONGEST_INPUT}"),
        *(f"-timeout={_MOST_SECONDS}", f"-rss_limit_mb={_MOST_MEGABYTES}", "-print_final_stats=1"),
        *(f"-artifact_prefix={folder}/", str(folder / "inputs"), str(corpus)),
    ]


if __name__ == "__main__":
    sys.exit(main())
