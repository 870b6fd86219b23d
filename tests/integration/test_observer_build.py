"""The torch observer's build: once for each torch, by one process, kept, and checked before it is loaded."""

import importlib.util
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from children import run_python

from pytest_opprof.capture.observer_build import compiler, is_kept, observer_for
from pytest_opprof.errors import CaptureUnavailableError

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

CXX = shutil.which("c++") or shutil.which("g++")


def only_cache(patch: pytest.MonkeyPatch, folder: Path, *, home: Path) -> None:
    """Makes a folder the first cache, and leaves no other one that could hold an observer."""
    patch.setenv("OPPROF_CACHE_DIR", str(folder))
    patch.setenv("HOME", str(home))
    patch.delenv("XDG_CACHE_HOME", raising=False)
    patch.setenv("TMPDIR", str(home))
    patch.setattr("tempfile.tempdir", str(home))
    patch.chdir(home)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that is empty."""
    folder, home = tmp_path / "cache", tmp_path / "home"
    folder.mkdir(mode=0o700)
    home.mkdir(mode=0o700)
    only_cache(monkeypatch, folder, home=home)
    return folder


class LoggingCompiler:
    """A C++ compiler that does its work, and logs that it was called."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "c++-that-logs"
        self._log = folder / "calls"
        self.path.write_text(f'#!/bin/sh\necho called >> "{self._log}"\nexec "{CXX}" "$@"\n')
        self.path.chmod(0o755)

    @property
    def calls(self) -> int:
        """How often it was called."""
        return len(self._log.read_text().splitlines()) if self._log.exists() else 0


@pytest.fixture
def logging_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoggingCompiler:
    if CXX is None:
        pytest.skip("no C++ compiler")
    wrapper = LoggingCompiler(tmp_path)
    monkeypatch.setenv("CXX", str(wrapper.path))
    return wrapper


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with nothing in it but the finished build that the whole test run shares."""
    if CXX is None:
        pytest.skip("no C++ compiler")
    library = observer_for(pytest.importorskip("torch")).path
    folder = tmp_path_factory.mktemp("built")
    for path in (library, library.with_name(f"{library.stem}.sha256")):
        shutil.copy(path, folder)
    return folder


def kept_in(folder: Path) -> set[str]:
    return {path.suffix for path in folder.iterdir()}


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
    observer = observer_for(torch)
    assert not observer.was_built
    assert observer.path.parent == cache
    assert logging_compiler.calls == 0


@pytest.mark.parametrize(
    "damage", ["changed", "cut", "gone", "record-gone", "record-changed", "written-by-all", "record-linked"]
)
def test_damaged_observer_is_built_anew(
    cache: Path, built: Path, logging_compiler: LoggingCompiler, tmp_path: Path, damage: str
) -> None:
    torch = pytest.importorskip("torch")
    shutil.copytree(built, cache, dirs_exist_ok=True)
    (library,) = cache.glob("*.so")
    (record,) = cache.glob("*.sha256")
    sound = library.read_bytes()
    # The compiler's work is known from the other tests: here it copies what it made for them.
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
    observer = observer_for(torch)
    assert observer.was_built
    assert observer.path.read_bytes() == sound
    assert logging_compiler.calls == 1
    assert is_kept(torch)


def test_observer_is_made_private_whatever_the_umask(
    cache: Path, built: Path, logging_compiler: LoggingCompiler
) -> None:
    torch = pytest.importorskip("torch")
    logging_compiler.path.write_text(copying_compiler(built, log=logging_compiler.path.with_name("calls")))
    before = os.umask(0)
    try:
        observer = observer_for(torch)
    finally:
        os.umask(before)
    assert observer.was_built
    for path in (observer.path, observer.path.with_suffix(".sha256")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert is_kept(torch)


def copying_compiler(built: Path, *, log: Path) -> str:
    (library,) = built.glob("*.so")
    return f'#!/bin/sh\necho called >> "{log}"\nwhile [ "$1" != -o ]; do shift; done\ncp "{library}" "$2"\n'


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777], ids=oct)
def test_folder_that_others_may_write_is_passed_over(
    cache: Path, built: Path, logging_compiler: LoggingCompiler, mode: int
) -> None:
    torch = pytest.importorskip("torch")
    shutil.copytree(built, cache, dirs_exist_ok=True)
    logging_compiler.path.write_text(copying_compiler(built, log=logging_compiler.path.with_name("calls")))
    cache.chmod(mode)
    assert not is_kept(torch)
    observer = observer_for(torch)
    home = Path.home() / ".cache" / "opprof"
    assert observer.path.parent == home
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert not stat.S_IMODE(observer.path.stat().st_mode) & 0o022


def test_folder_behind_a_link_is_passed_over(
    cache: Path, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    link = tmp_path / "link"
    link.symlink_to(built)
    monkeypatch.setenv("OPPROF_CACHE_DIR", str(link))
    assert not is_kept(torch)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_folder_of_somebody_else_is_passed_over(cache: Path, built: Path) -> None:
    torch = pytest.importorskip("torch")
    shutil.copytree(built, cache, dirs_exist_ok=True)
    os.chown(cache, 12345, 12345)
    assert not is_kept(torch)


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        pytest.param(
            "echo 'In file included from x:' >&2; echo 'x.h:3: fatal error: no such file' >&2; exit 1",
            "x.h:3: fatal error: no such file",
            id="error",
        ),
        pytest.param("echo 'something else' >&2; exit 3", "something else", id="other-words"),
        pytest.param("exit 3", "it ended with status 3 and no message", id="silent"),
        pytest.param("kill -9 $$", "it ended with status -9 and no message", id="killed"),
    ],
)
def test_failing_compiler_is_one_sentence(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, sentence: str
) -> None:
    torch = pytest.importorskip("torch")
    failing = tmp_path / "failing c++"
    failing.write_text(f"#!/bin/sh\n{script}\n")
    failing.chmod(0o755)
    monkeypatch.setenv("CXX", f"'{failing}' -flag")
    with pytest.raises(CaptureUnavailableError) as raised:
        observer_for(torch)
    assert str(raised.value) == (
        f"'{failing}' -flag cannot compile the torch observer for torch {torch.__version__}: {sentence}"
    )
    assert kept_in(cache) == {".lock"}


def test_compiler_that_cannot_be_run_is_one_sentence(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    not_a_program = tmp_path / "c++"
    not_a_program.write_bytes(b"\x7fELF and nothing more")
    not_a_program.chmod(0o755)
    monkeypatch.setenv("CXX", str(not_a_program))
    with pytest.raises(
        CaptureUnavailableError, match=f"the torch observer cannot be built in {cache}: .*Exec"
    ):
        observer_for(torch)


def test_no_compiler_names_the_package(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(cache))
    with pytest.raises(CaptureUnavailableError, match=r"no C\+\+ compiler was found .* apt install g\+\+"):
        observer_for(torch)


@pytest.mark.parametrize("words", ["", "   "])
def test_empty_variable_names_no_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str
) -> None:
    usual = tmp_path / "g++"
    usual.write_text("#!/bin/sh\n")
    usual.chmod(0o755)
    monkeypatch.setenv("CXX", words)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compiler() == str(usual)


@pytest.mark.parametrize("words", ["/no/such/compiler", "ccache'", "no-such-wrapper c++"])
def test_named_compiler_that_is_not_there_is_none(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setenv("CXX", words)
    assert compiler() is None


def test_no_folder_is_one_sentence(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    nowhere = tmp_path / "file"
    nowhere.touch()
    monkeypatch.setenv("OPPROF_CACHE_DIR", str(nowhere))
    monkeypatch.setenv("HOME", str(nowhere))
    (Path.cwd() / ".pytest_cache").touch()
    (Path.cwd() / f"opprof-{os.getuid()}").touch()
    with pytest.raises(CaptureUnavailableError, match="set OPPROF_CACHE_DIR to one that only you can write"):
        observer_for(torch)


def test_nameless_user_has_folders_too(cache: Path) -> None:
    """In a container, a user may have no entry in the password file, no home, and a folder that is gone."""
    done = run_python(
        """
    import os, sys
    from pytest_opprof.capture.folders import observer_folders

    if os.getuid() == 0:
        os.setuid(54321)
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir("../gone")
    print(list(observer_folders())[-1].name == f"opprof-{os.getuid()}")
    """,
        environment={"HOME": None, "OPPROF_CACHE_DIR": None},
        cwd=writable_by_all(cache.parent / "anywhere"),
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def writable_by_all(folder: Path) -> Path:
    folder.mkdir()
    folder.chmod(0o777)
    for parent in folder.parents[:3]:
        parent.chmod(parent.stat().st_mode | 0o011)
    return folder
