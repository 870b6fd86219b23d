"""The torch that an observer is built for: unpacked elsewhere, damaged, or of an untested release."""

import importlib.util
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from support.programs.children import run_python
from support.programs.observer_builds import LoggingCompiler, Unpacked, copying_compiler, kept_in

from pytest_opprof.capture.observer_build import build_of, observer_for
from pytest_opprof.capture.torch_build import torch_build
from pytest_opprof.errors import CaptureUnavailableError

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def test_unpacked_torch_shares_the_installed_ones_observer(unpacked: Unpacked) -> None:
    installed = build_of(pytest.importorskip("torch"))
    assert replace(torch_build(unpacked.folder), folder=installed.folder) == installed


@pytest.mark.slow
def test_truncated_headers_are_reported(cache: Path, unpacked: Unpacked) -> None:
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


def test_folder_without_torch_is_reported(tmp_path: Path) -> None:
    with pytest.raises(
        CaptureUnavailableError, match=f"{tmp_path} is not a torch that can be recorded: .*No such"
    ):
        torch_build(tmp_path)


@pytest.mark.parametrize(
    ("version", "is_tried"), [("2.5.1", False), ("2.6.0+cu124", True), ("2.99.0a0", False)]
)
def test_untested_release_is_recognized(unpacked: Unpacked, version: str, is_tried: bool) -> None:
    unpacked.is_release(version)
    assert torch_build(unpacked.folder).is_tried is is_tried


@pytest.mark.slow
def test_untested_release_is_refused_with_advice(cache: Path, unpacked: Unpacked) -> None:
    unpacked.is_release("2.99.0")
    unpacked.cut_in_half("ATen/record_function.h")
    with pytest.raises(
        CaptureUnavailableError, match=r"supports torch 2\.6 to .*: take a newer pytest-opprof"
    ):
        observer_for(torch_build(unpacked.folder))


@pytest.mark.slow
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
