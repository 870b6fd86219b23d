"""Naming our library as the ITT collector of this process."""

import os
import sys

import pytest

from pytest_opprof.capture.injection import arm_itt, itt_is_armed, library_path

VARIABLE, MARK = "INTEL_LIBITTNOTIFY64", "OPPROF_ITT_ARMED"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a collector, and put back as it was: monkeypatch notes what it sets or takes away."""
    for name in (VARIABLE, MARK):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def test_library_is_where_it_says() -> None:
    assert library_path().read_bytes().startswith(b"\x7fELF")


def test_arming_names_our_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert not itt_is_armed()
    assert arm_itt() is None
    assert os.environ[VARIABLE] == str(library_path())
    assert itt_is_armed()


def test_arming_after_torch_says_what_to_export(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", sys)
    reason = arm_itt()
    assert reason is not None
    assert f"export {VARIABLE}={library_path()} before pytest starts" in reason
    assert VARIABLE not in os.environ
    assert not itt_is_armed()


def test_collector_of_another_tool_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/opt/tool.so")
    assert arm_itt() == f"ITT is collected by another tool: {VARIABLE}=/opt/tool.so"
    assert os.environ[VARIABLE] == "/opt/tool.so"
    assert not itt_is_armed()


def test_variable_set_late_by_hand_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch may have looked for it already; what this process was started with says more."""
    monkeypatch.setenv(VARIABLE, str(library_path()))
    started_with = os.environb.get(VARIABLE.encode()) in initial_environment()
    assert itt_is_armed() == started_with


def initial_environment() -> list[bytes]:
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123  # a file of the kernel's
        return [entry.partition(b"=")[2] for entry in file.read().split(b"\0")]
