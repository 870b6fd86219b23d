"""Faults that the operating system can cause around a session."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_KIB: Final = 1024
_DISK_KIB: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One kind of harm.

    Attributes:
        inside: Python code that runs in a step of each test.
        environment: Extra variables of the session; ``{folder}`` is the project's folder.
        limits: Resource limits of the process (`resource.RLIMIT_...`).
        prepare: Damages the project before the session.
        repair: Undoes the damage.
        signal: Sent at a random moment to the session or to one of its children.
        to_child: Send the signal to a running child, if there is one.
        ends_it: The session gives no verdict.
        spoils_baseline: The stored baseline is unusable, and the session must say so.
        loses_events: The measurement is incomplete, and the session must say so.
    """

    name: str
    inside: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[int, int] = field(default_factory=dict)
    prepare: Callable[[Path], None] | None = None
    repair: Callable[[Path], None] | None = None
    signal: signal.Signals | None = None
    to_child: bool = False
    ends_it: bool = False
    spoils_baseline: bool = False
    loses_events: bool = False

    def limit(self) -> None:
        for what, most in self.limits.items():
            resource.setrlimit(what, (most, resource.getrlimit(what)[1]))


def can_mount() -> bool:
    return os.getuid() == 0 and shutil.which("mount") is not None


def _on_a_small_disk(folder: Path, *, fill: bool) -> None:
    """Move the store to a file system of its own."""
    store, aside = folder / ".opprof", folder / "aside"
    store.rename(aside)
    store.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_KIB}k", "none", str(store)]
    subprocess.run(mount, check=True)
    shutil.copytree(aside, store, dirs_exist_ok=True)
    shutil.rmtree(aside)
    if fill:
        _fill(store / "filler")
    else:
        subprocess.run(["mount", "-o", "remount,ro", str(store)], check=True)


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (64 * _KIB, _KIB, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def _from_the_small_disk(folder: Path) -> None:
    store, aside = folder / ".opprof", folder / "aside"
    shutil.copytree(store, aside, ignore=shutil.ignore_patterns("filler"))
    subprocess.run(["umount", str(store)], check=True)
    store.rmdir()
    aside.rename(store)


def _cut_baselines(folder: Path) -> None:
    for path in (folder / ".opprof" / "main").glob("*.json*"):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])


def _garbage(folder: Path) -> None:
    chance = random.Random(1)  # noqa: S311 - any garbage serves
    for name in ("last.json", "history.sqlite", "ab/x/state.json"):
        path = folder / ".opprof" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chance.randbytes(1_000))


_SIGNALS: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGKILL,
    signal.SIGSEGV,
    signal.SIGQUIT,
    signal.SIGHUP,
)

FAULTS: Final = (
    Fault(name="none"),
    # ---- inside a test -----------------------------------------------------------------------------
    Fault(name="segfault", inside="import ctypes; ctypes.string_at(0)", ends_it=True),
    Fault(name="abort", inside="os.abort()", ends_it=True),
    Fault(name="exit", inside="os._exit(7)", ends_it=True),
    Fault(name="fork", inside="pid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0)"),
    Fault(name="spawn", inside="os.waitpid(os.posix_spawn('/bin/true', ['true'], os.environ), 0)"),
    Fault(name="vfork", inside="subprocess.run(['/bin/true'], check=True)"),
    Fault(name="descriptors closed", inside="os.closerange(20, 200)"),
    Fault(name="profile function", inside="sys.setprofile(lambda *_: None); sys.setprofile(None)"),
    Fault(name="trace function", inside="sys.settrace(lambda *_: None); sys.settrace(None)"),
    Fault(name="cProfile", inside="import cProfile; cProfile.runctx('sum(range(9))', {}, {})"),
    Fault(name="faulthandler", inside="import faulthandler; faulthandler.enable(); faulthandler.disable()"),
    Fault(
        name="threads", inside="for _ in range(50):\n t = threading.Thread(target=int); t.start(); t.join()"
    ),
    Fault(
        name="open threads", inside="threading.Thread(target=time.sleep, args=(0.2,), daemon=True).start()"
    ),
    Fault(
        name="alarms",
        inside="signal.signal(signal.SIGALRM, lambda *_: None)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)\n"
        "end = time.monotonic() + 0.02\n"
        "while time.monotonic() < end: record_function('work').__class__\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)",
    ),
    Fault(name="collections", inside="gc.collect(); gc.disable(); gc.enable()"),
    Fault(name="recursion", inside="try: (lambda f: f(f))(lambda f: f(f))\nexcept RecursionError: pass"),
    Fault(name="working folder gone", inside="d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)"),
    Fault(name="environment gone", inside="os.environ.pop('HOME', None); os.environ.pop('TMPDIR', None)"),
    # ---- around the process -----------------------------------------------------------------------
    Fault(name="no session folder", environment={"OPPROF_DIR": "{folder}/nowhere"}),
    Fault(name="session folder is a file", environment={"OPPROF_DIR": "{folder}/pytest.ini"}),
    Fault(name="no memory to record into", environment={"OPPROF_MAX_BYTES": "4096"}, loses_events=True),
    Fault(name="budget that means nothing", environment={"OPPROF_MAX_BYTES": "much"}),
    Fault(name="file size quota", limits={resource.RLIMIT_FSIZE: 64 * _KIB}),
    Fault(name="few descriptors", limits={resource.RLIMIT_NOFILE: 40}),
    Fault(name="little memory", limits={resource.RLIMIT_AS: 400 << 20}),
    Fault(name="small stack", limits={resource.RLIMIT_STACK: 1 << 20}),
    # ---- files ------------------------------------------------------------------------------------
    Fault(name="baselines cut in half", prepare=_cut_baselines, spoils_baseline=True),
    Fault(name="garbage beside the baselines", prepare=_garbage),
    *(Fault(name=number.name, signal=number, ends_it=True) for number in _SIGNALS),
    *(
        Fault(name=f"{number.name} to a child", signal=number, to_child=True)
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)
    ),
    Fault(name="stopped for a while", signal=signal.SIGSTOP),
)
# These need the right to mount.
MOUNTED: Final = (
    Fault(
        name="full disk",
        prepare=lambda folder: _on_a_small_disk(folder, fill=True),
        repair=_from_the_small_disk,
    ),
    Fault(
        name="read-only store",
        prepare=lambda folder: _on_a_small_disk(folder, fill=False),
        repair=_from_the_small_disk,
    ),
)
