"""An empty cache, a logging compiler, a finished build, and a torch to modify."""

import shutil
from pathlib import Path

import pytest
from support.programs.observer_builds import CXX, LoggingCompiler, Unpacked, observed, only_cache


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that is empty."""
    folder, home = tmp_path / "cache", tmp_path / "home"
    folder.mkdir(mode=0o700)
    home.mkdir(mode=0o700)
    only_cache(monkeypatch, folder, home=home)
    return folder


@pytest.fixture
def logging_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoggingCompiler:
    if CXX is None:
        pytest.skip("no C++ compiler")
    wrapper = LoggingCompiler(tmp_path)
    monkeypatch.setenv("CXX", str(wrapper.path))
    return wrapper


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder that holds only the finished build shared by the whole test run."""
    if CXX is None:
        pytest.skip("no C++ compiler")
    library = observed(pytest.importorskip("torch")).path
    folder = tmp_path_factory.mktemp("built")
    record = library.with_suffix(".sha256")
    shutil.copy(library, folder)
    digest, _, _ = record.read_text().partition("\n")
    (folder / record.name).write_text(digest)  # without a compiler, because these tests name others
    return folder


@pytest.fixture
def unpacked(tmp_path: Path) -> Unpacked:
    return Unpacked(pytest.importorskip("torch"), tmp_path / "elsewhere" / "torch")
