"""The torch observer is built once per torch, by one process, stored, and checked before it is loaded."""

import importlib.util
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from support.programs.observer_builds import LoggingCompiler, copying_compiler, is_kept, kept_in, observed

from pytest_opprof.capture.observer_build import load
from pytest_opprof.errors import CaptureUnavailableError

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


RECORD = """
    import sys, torch
    from pytest_opprof.capture.collector import Collector

    collector = Collector.instance()
    collector.open()
    collector.start()
    torch.ones(2)
    recording = collector.stop()
    print(collector.problems or [recording.name(event) for event in range(len(recording))])
"""


@pytest.mark.slow
def test_processes_that_start_together_compile_once(cache: Path, logging_compiler: LoggingCompiler) -> None:
    program = "\n".join(line[4:] for line in RECORD.splitlines())
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    said = [process.communicate(timeout=180) for process in running]
    assert said == [("['aten::ones', 'aten::empty', 'aten::fill_']\n", "")] * 4
    assert logging_compiler.calls == 1
    assert kept_in(cache) == {".lock", ".so", ".sha256"}


def test_kept_observer_is_found(cache: Path, built: Path, logging_compiler: LoggingCompiler) -> None:
    torch = pytest.importorskip("torch")
    assert not is_kept(torch)
    shutil.copytree(built, cache, dirs_exist_ok=True)
    assert is_kept(torch)
    observer = observed(torch)
    assert not observer.was_built
    assert observer.path.parent == cache
    assert logging_compiler.calls == 0


@pytest.mark.parametrize(
    "damage", ["changed", "cut", "gone", "record-gone", "record-changed", "written-by-all", "record-linked"]
)
def test_damaged_observer_is_rebuilt(
    cache: Path, built: Path, logging_compiler: LoggingCompiler, tmp_path: Path, damage: str
) -> None:
    torch = pytest.importorskip("torch")
    shutil.copytree(built, cache, dirs_exist_ok=True)
    (library,) = cache.glob("*.so")
    (record,) = cache.glob("*.sha256")
    sound = library.read_bytes()
    # The other tests cover the compiler: here it copies the build it made for them.
    logging_compiler.path.write_text(copying_compiler(built, log=logging_compiler.path.with_name("calls")))
    match damage:
        case "changed":
            library.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
        case "cut":
            library.write_bytes(sound[: len(sound) // 2])
        case "gone":
            library.unlink()
        case "record-gone":
            record.unlink()
        case "record-changed":
            record.write_text("0" * 64)
        case "written-by-all":
            library.chmod(0o777)
        case "record-linked":
            record.rename(tmp_path / "elsewhere")
            record.symlink_to(tmp_path / "elsewhere")
    assert not is_kept(torch)
    observer = observed(torch)
    assert observer.was_built
    assert observer.path.read_bytes() == sound
    assert logging_compiler.calls == 1
    assert is_kept(torch)


def test_observer_is_private_with_any_umask(
    cache: Path, built: Path, logging_compiler: LoggingCompiler
) -> None:
    torch = pytest.importorskip("torch")
    logging_compiler.path.write_text(copying_compiler(built, log=logging_compiler.path.with_name("calls")))
    before = os.umask(0)
    try:
        observer = observed(torch)
    finally:
        os.umask(before)
    assert observer.was_built
    for path in (observer.path, observer.path.with_suffix(".sha256")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert is_kept(torch)


def test_observer_of_another_compiler_is_rebuilt(
    cache: Path, built: Path, logging_compiler: LoggingCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    logging_compiler.path.write_text(copying_compiler(built, log=logging_compiler.path.with_name("calls")))
    assert observed(torch).was_built
    assert not observed(torch).was_built
    monkeypatch.setenv("CXX", f"{logging_compiler.path} -O1")
    assert observed(torch).was_built
    monkeypatch.setenv("CXX", "/no/such/compiler")
    assert not observed(torch).was_built


def test_unloadable_observer_is_rebuilt(cache: Path, built: Path, logging_compiler: LoggingCompiler) -> None:
    torch = pytest.importorskip("torch")
    mended = cache / "mended"
    (library,) = built.glob("*.so")
    logging_compiler.path.write_text(
        f"""#!/bin/sh
        while [ "$1" != -o ]; do shift; done
        if [ -e "{mended}" ]; then cp "{library}" "$2"; else echo no library > "$2"; fi
        """
    )
    broken = observed(torch).path
    with pytest.raises(
        CaptureUnavailableError, match=f"the torch observer {broken} cannot be loaded: .*too short"
    ):
        load(torch)
    assert not is_kept(torch)
    assert observed(torch).was_built
    mended.touch()
    assert load(torch)._name == str(broken)
    assert is_kept(torch)
