"""The torch observer's build: once for each torch, by one process, kept, and checked before it is loaded."""

import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.programs.children import run_python

from pytest_opprof.capture.cxx import compiler
from pytest_opprof.capture.observer_build import Observer, build_of, kept, load, observer_for
from pytest_opprof.capture.torch_build import torch_build
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
    library = observed(pytest.importorskip("torch")).path
    folder = tmp_path_factory.mktemp("built")
    record = library.with_suffix(".sha256")
    shutil.copy(library, folder)
    digest, _, _ = record.read_text().partition("\n")
    (folder / record.name).write_text(digest)  # of no compiler in particular: these tests name others
    return folder


def is_kept(torch: Any) -> bool:
    return kept(build_of(torch)) is not None


def observed(torch: Any) -> Observer:
    return observer_for(build_of(torch))


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
    observer = observed(torch)
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
    observer = observed(torch)
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
        observer = observed(torch)
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
    observer = observed(torch)
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
        pytest.param("exit 0", "it ended with status 0 and wrote no file", id="no-file"),
        pytest.param(
            "dd if=/dev/zero bs=1M count=2048 2>/dev/null | tr '\\0' x >&2; echo >&2; echo error >&2; exit 1",
            300 * "x",
            id="two-gigabytes-of-words",
        ),
        pytest.param(
            "sleep 600",
            "it was stopped after 2 s without a result (is this machine slow? Set OPPROF_COMPILE_TIMEOUT to more "
            "seconds)",
            id="hangs",
        ),
        pytest.param(
            "sleep 600 & exit 0",
            "it was stopped after 2 s without a result (is this machine slow? Set OPPROF_COMPILE_TIMEOUT to more "
            "seconds)",
            id="leaves-a-child",
        ),
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
    monkeypatch.setenv("OPPROF_COMPILE_TIMEOUT", "2" if "sleep" in script else "60")
    with pytest.raises(CaptureUnavailableError) as raised:
        observed(torch)
    assert str(raised.value) == (
        f"'{failing}' -flag cannot compile the torch observer for torch {torch.__version__}: {sentence}"
    )
    assert kept_in(cache) == {".lock"}


@pytest.mark.parametrize("limit", ["0", "soon", "-1", "inf", "nan"])
def test_time_limit_that_is_not_a_number_is_one_sentence(
    cache: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("OPPROF_COMPILE_TIMEOUT", limit)
    with pytest.raises(CaptureUnavailableError, match=f"OPPROF_COMPILE_TIMEOUT={limit} is invalid: give a"):
        observed(torch)


def test_compiler_without_the_standard_is_named_with_the_flag(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = replace(build_of(pytest.importorskip("torch")), standard="c++20")
    old = tmp_path / "old-c++"
    old.write_text(
        f"""#!/bin/sh
        for word; do [ "$word" != -std=c++20 ] || exec "{CXX}" "-std=c++98" "$@" -std=c++98; done
        exec "{CXX}" "$@"
        """
    )
    old.chmod(0o755)
    monkeypatch.setenv("CXX", str(old))
    with pytest.raises(
        CaptureUnavailableError, match=r"it lacks -std=c\+\+20, which this torch's headers need"
    ):
        observer_for(build)


class Unpacked:
    """A torch of links to the real one's files, some of which can be others."""

    def __init__(self, torch: Any, folder: Path) -> None:
        self._real = Path(torch.__file__).parent
        self.folder = folder
        (folder / "include").mkdir(parents=True)
        shutil.copy(self._real / "version.py", folder)
        (folder / "lib").symlink_to(self._real / "lib")
        for part in (self._real / "include").iterdir():
            (folder / "include" / part.name).symlink_to(part)

    def cut_in_half(self, header: str) -> None:
        """Leaves the first half of one of its headers."""
        path = self.folder / "include" / header
        real = path.parent.readlink()
        path.parent.unlink()
        path.parent.mkdir()
        for file in real.iterdir():
            (path.parent / file.name).symlink_to(file)
        text = path.read_text()
        path.unlink()
        path.write_text(text[: len(text) // 2])

    def is_release(self, version: str) -> None:
        """Says that it is another one."""
        path = self.folder / "version.py"
        path.write_text(re.sub(r"__version__ = '[^']*'", f"__version__ = '{version}'", path.read_text()))


@pytest.fixture
def unpacked(tmp_path: Path) -> Unpacked:
    return Unpacked(pytest.importorskip("torch"), tmp_path / "elsewhere" / "torch")


def test_unpacked_torch_has_the_observer_of_the_installed_one(unpacked: Unpacked) -> None:
    installed = build_of(pytest.importorskip("torch"))
    assert replace(torch_build(unpacked.folder), folder=installed.folder) == installed


def test_headers_cut_in_half_are_one_sentence(cache: Path, unpacked: Unpacked) -> None:
    unpacked.cut_in_half("ATen/record_function.h")
    build = torch_build(unpacked.folder)
    with pytest.raises(CaptureUnavailableError, match=r"observer for torch .*: .*error: .*") as raised:
        observer_for(build)
    assert "\n" not in str(raised.value)
    assert kept_in(cache) == {".lock"}


def test_torch_without_headers_names_the_package(unpacked: Unpacked) -> None:
    shutil.rmtree(unpacked.folder / "include")
    with pytest.raises(CaptureUnavailableError, match=r"lacks its C\+\+ headers .* apt install libtorch-dev"):
        torch_build(unpacked.folder)


def test_folder_without_torch_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        CaptureUnavailableError, match=f"{tmp_path} is not a torch that can be recorded: .*No such"
    ):
        torch_build(tmp_path)


@pytest.mark.parametrize(
    ("version", "is_tried"), [("2.5.1", False), ("2.6.0+cu124", True), ("2.99.0a0", False)]
)
def test_release_that_nobody_tried_is_known(unpacked: Unpacked, version: str, is_tried: bool) -> None:
    unpacked.is_release(version)
    assert torch_build(unpacked.folder).is_tried is is_tried


def test_release_that_nobody_tried_is_refused_with_what_to_do(cache: Path, unpacked: Unpacked) -> None:
    unpacked.is_release("2.99.0")
    unpacked.cut_in_half("ATen/record_function.h")
    with pytest.raises(
        CaptureUnavailableError, match=r"supports torch 2\.6 to .*: take a newer pytest-opprof"
    ):
        observer_for(torch_build(unpacked.folder))


def test_observer_of_another_compiler_is_built_anew(
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


def test_observer_that_cannot_be_loaded_is_built_anew(
    cache: Path, built: Path, logging_compiler: LoggingCompiler
) -> None:
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


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_folder_below_somebody_elses_is_one_sentence(cache: Path, built: Path) -> None:
    torch = pytest.importorskip("torch")
    inner = cache / "inner"
    shutil.copytree(built, inner)
    inner.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        only_cache(patch, inner, home=cache)
        assert is_kept(torch)
        os.chown(cache, 12345, 12345)
        assert not is_kept(torch)
        with pytest.raises(
            CaptureUnavailableError, match=rf"\({cache} belongs to another user\): set OPPROF_"
        ):
            observed(torch)


def test_prepared_folder_serves_a_machine_without_a_compiler(
    cache: Path, unpacked: Unpacked, logging_compiler: LoggingCompiler, built: Path, tmp_path: Path
) -> None:
    logging_compiler.path.write_text(copying_compiler(built, log=logging_compiler.path.with_name("calls")))
    prepared = tmp_path / "prepared"
    command = ["prepare", "--torch", str(unpacked.folder.parent), "--output", str(prepared)]
    done = run_python(f"from pytest_opprof.cli.main import main; raise SystemExit(main({command}))")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"On a machine without a compiler: OPPROF_CACHE_DIR={prepared}\n")
    assert {stat.S_IMODE(path.stat().st_mode) for path in prepared.glob("*.s*")} == {0o644}
    found = run_python(
        """
    import torch
    from pytest_opprof.capture.observer_build import build_of, kept
    print(kept(build_of(torch)).folder)
    """,
        environment={"OPPROF_CACHE_DIR": str(prepared), "CXX": "/no/such/compiler"},
    )
    assert found.stdout == f"{prepared}\n", found.stderr


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
        observed(torch)


def test_no_compiler_names_the_package(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(cache))
    with pytest.raises(CaptureUnavailableError, match=r"no C\+\+ compiler was found .* apt install g\+\+"):
        observed(torch)


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
        observed(torch)


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
