"""Naming our library as this process's ITT collector and NVTX tool."""

import os
import sys

import pytest

from pytest_opprof.capture.injection import INJECTIONS, Injection, library_path

each = pytest.mark.parametrize("injection", INJECTIONS, ids=lambda injection: injection.name)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a collector, and restored afterwards, because monkeypatch records its changes."""
    for injection in INJECTIONS:
        for name in (injection.variable, injection.mark):
            monkeypatch.setenv(name, "")
            monkeypatch.delenv(name)


def test_injection_library_exists() -> None:
    assert library_path().read_bytes().startswith(b"\x7fELF")


@each
def test_arming_names_our_library(injection: Injection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, injection.callers[0], raising=False)
    assert not injection.is_armed
    assert injection.arm() is None
    assert os.environ[injection.variable] == str(library_path())
    assert injection.is_armed


@each
def test_late_arming_says_what_to_export(injection: Injection, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = injection.callers[0]
    monkeypatch.setitem(sys.modules, caller, sys)
    reason = injection.arm()
    assert reason is not None
    assert reason.startswith(f"{caller} was imported before the {injection.name} collector was set up")
    assert f"export {injection.variable}={library_path()} before pytest starts" in reason
    assert injection.variable not in os.environ
    assert not injection.is_armed


@each
def test_collector_of_another_tool_stays(injection: Injection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(injection.variable, "/opt/tool.so")
    name, variable = injection.name, injection.variable
    assert injection.arm() == f"another tool collects {name}: {variable}=/opt/tool.so"
    assert os.environ[injection.variable] == "/opt/tool.so"
    assert not injection.is_armed


@each
def test_variable_set_late_by_hand_is_not_trusted(
    injection: Injection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library may have read it already; the environment at the process's start counts."""
    monkeypatch.setenv(injection.variable, str(library_path()))
    started_with = os.environb.get(injection.variable.encode()) in initial_environment()
    assert injection.is_armed == started_with


def initial_environment() -> list[bytes]:
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123  # a file of the kernel's
        return [entry.partition(b"=")[2] for entry in file.read().split(b"\0")]
