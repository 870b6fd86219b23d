"""Builds native/tests, for tests that drive it from Python."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(repository: Path, *targets: str) -> Path:
    """The folder of native/tests in which `make ctest` builds these targets; skips without cmake."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    cmake = shutil.which("cmake", path=path)
    if cmake is None:
        pytest.skip("no cmake to build native/tests with")
    folder = repository / "build" / "c"
    configure = ["-S", str(repository / "native"), "-B", str(folder), "-DCMAKE_BUILD_TYPE=RelWithDebInfo"]
    python = f"-DOP_PYTHON={sys.executable}"
    with _locked(folder.with_suffix(".lock")):  # xdist workers build it once
        for arguments in ([*configure, python], ["--build", str(folder), "--target", *targets]):
            subprocess.run([cmake, *arguments], check=True, capture_output=True)
    return folder / "tests"
