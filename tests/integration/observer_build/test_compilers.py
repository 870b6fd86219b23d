"""The compiler that builds an observer: which one it is, and its failures in one sentence."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
from support.programs.observer_builds import CXX, kept_in, observed

from pytest_opprof.capture.cxx import compiler
from pytest_opprof.capture.observer_build import build_of, observer_for
from pytest_opprof.errors import CaptureUnavailableError

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@pytest.mark.slow
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
def test_failing_compiler_is_reported(
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
def test_non_numeric_time_limit_is_reported(cache: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("OPPROF_COMPILE_TIMEOUT", limit)
    with pytest.raises(CaptureUnavailableError, match=f"OPPROF_COMPILE_TIMEOUT={limit} is invalid: give a"):
        observed(torch)


@pytest.mark.slow
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


def test_unrunnable_compiler_is_reported(
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
def test_empty_variable_selects_the_usual_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str
) -> None:
    usual = tmp_path / "g++"
    usual.write_text("#!/bin/sh\n")
    usual.chmod(0o755)
    monkeypatch.setenv("CXX", words)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compiler() == str(usual)


@pytest.mark.parametrize("words", ["/no/such/compiler", "ccache'", "no-such-wrapper c++"])
def test_missing_named_compiler_is_not_replaced(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setenv("CXX", words)
    assert compiler() is None
