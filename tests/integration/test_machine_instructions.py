"""Machine instructions without QEMU: names of code, and foreign files."""

import array
import ctypes
import os
from pathlib import Path

import pytest

from pytest_opprof.capture.instructions import MachineInstructionCounter
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import name_text
from pytest_opprof.errors import CaptureUnavailableError


def names_of(addresses: list[int]) -> list[tuple[str, str]]:
    files, functions = (ffi.new("uint32_t[]", len(addresses)) for _ in range(2))
    assert lib.op_code_names(ffi.new("uint64_t[]", addresses), len(addresses), files, functions) == 0
    return [
        (name_text(function), Path(name_text(file)).name if file else "")
        for file, function in zip(files, functions, strict=True)
    ]


def address_of(library: ctypes.CDLL, name: str) -> int:
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address


def test_each_address_has_its_function_and_file() -> None:
    python, libc = ctypes.pythonapi, ctypes.CDLL("libc.so.6")
    wanted = {
        address_of(python, "PyList_New"): "PyList_New",
        address_of(python, "PyDict_New") + 1: "PyDict_New",
        address_of(libc, "getenv"): "getenv",
    }
    found = names_of(sorted(wanted))
    assert [function for function, _ in found] == [wanted[address] for address in sorted(wanted)]
    assert {file for function, file in found if function == "getenv"} == {"libc.so.6"}


def test_non_code_addresses_have_no_name() -> None:
    kept = ctypes.create_string_buffer(64)  # on the heap, which belongs to no file
    assert names_of([16, ctypes.addressof(kept)]) == [("", ""), ("", "")]


def test_a_process_without_qemu_says_that_nothing_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPPROF_REPLAY_COUNTS", str(tmp_path / "counts"))
    counter = MachineInstructionCounter()
    counter.start()
    with pytest.raises(CaptureUnavailableError, match="this process does not run under QEMU"):
        counter.stop()


@pytest.mark.parametrize("is_own", [True, False])
def test_counts_of_another_writer_are_not_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_own: bool
) -> None:
    monkeypatch.setenv("OPPROF_REPLAY_COUNTS", str(tmp_path / "counts"))
    address = address_of(ctypes.pythonapi, "PyList_New")
    counter = MachineInstructionCounter()
    counter.start()
    Path(f"{tmp_path}/counts-{os.getpid()}").write_bytes(array.array("Q", [address, 7]).tobytes())
    if is_own:
        assert counter.stop().totals == (7,)
    else:
        owner = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: owner)
        with pytest.raises(CaptureUnavailableError):
            counter.stop()


def test_unremovable_file_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPPROF_REPLAY_COUNTS", str(tmp_path / "counts"))
    Path(f"{tmp_path}/counts-{os.getpid()}").mkdir()
    with pytest.raises(CaptureUnavailableError, match="machine instructions were not counted: "):
        MachineInstructionCounter().start()
