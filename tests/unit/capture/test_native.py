"""Why native modules are missing, and their replacements."""

import importlib.metadata
import os
import platform
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.programs.children import run_python

from pytest_opprof.capture import native
from pytest_opprof.capture.native import ABSENCE, Absence, lib, require

WITHOUT = "from support.programs import elsewhere; elsewhere.without_native()\n"


def config_variables(monkeypatch: pytest.MonkeyPatch, **values: object) -> None:
    real = sysconfig.get_config_var
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: values.get(name, real(name)))


def test_native_modules_are_available_here() -> None:
    require()
    assert ABSENCE is None
    assert lib.op_session_is_open() in {0, 1}


@pytest.mark.parametrize(("system", "name"), [("darwin", "macOS"), ("win32", "Windows"), ("aix", "aix")])
def test_other_systems_are_named(system: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    absence = native._absence()
    assert absence == Absence(reason=f"pytest-opprof records only on Linux, and this is {name}")


def test_other_implementations_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name="pypy"))
    monkeypatch.setattr(platform, "python_implementation", lambda: "PyPy")
    assert native._absence() == Absence(reason="pytest-opprof records only in CPython, and this is PyPy")


def test_free_threaded_builds_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    config_variables(monkeypatch, Py_GIL_DISABLED=1)
    reason = "pytest-opprof needs the global interpreter lock, and this Python is free-threaded"
    assert native._absence() == Absence(reason=reason)


def test_musl_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    config_variables(monkeypatch, SOABI="cpython-312-x86_64-linux-musl")
    reason = "pytest-opprof records only with glibc, and this Python was built for musl"
    assert native._absence() == Absence(reason=reason)


@pytest.mark.parametrize(
    ("wheel", "absence"),
    [
        pytest.param(
            "Root-Is-Purelib: true\nTag: py3-none-any\n",
            Absence(reason="pytest-opprof was installed with OPPROF_NATIVE=off"),
            id="pure",
        ),
        pytest.param(
            "Root-Is-Purelib: false\n",
            Absence(
                reason="the native modules of pytest-opprof are missing: install it again", is_fault=True
            ),
            id="damaged",
        ),
        pytest.param(
            None,
            Absence(
                reason="the native modules of pytest-opprof are missing: install it again", is_fault=True
            ),
            id="never installed",
        ),
    ],
)
def test_missing_modules_are_explained_by_the_wheel(
    wheel: str | None, absence: Absence, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if wheel is not None:
        (tmp_path / "WHEEL").write_text(wheel, encoding="utf-8")

    def distribution(_name: str) -> Any:
        if wheel is None:
            raise importlib.metadata.PackageNotFoundError
        return importlib.metadata.PathDistribution(tmp_path)

    monkeypatch.setattr(importlib.metadata, "distribution", distribution)
    monkeypatch.setitem(sys.modules, "pytest_opprof._collector", None)
    assert native._absence() == absence


def test_modules_that_cannot_be_loaded_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pytest_opprof._fast", None)
    absence = native._absence()
    assert absence is not None
    assert absence.is_fault
    assert absence.reason.startswith("the native modules of pytest-opprof cannot be loaded (")


def test_package_imports_and_raises_one_error() -> None:
    done = run_python(
        WITHOUT
        + """
from pytest_opprof import *
from pytest_opprof import itt
from pytest_opprof.capture.native import ABSENCE
from pytest_opprof.errors import CaptureUnavailableError
from pytest_opprof.timers import cuda_perf_counter

listen()
with record_function("range"), itt.range("range"):
    itt.mark("mark")
    assert (range_push("a"), range_push("b"), range_pop(), range_pop()) == (0, 1, 1, 0)
assert not itt.is_available()
assert supported_activities() == {ProfilerActivity.CPU}

for start in (
    profile().start,
    profile(schedule=schedule(wait=0, warmup=1, active=1)).start,
    lambda: load_trace("trace.json"),
    lambda: profile(experimental_config=_ExperimentalConfig(performance_events=["cycles"])).start(),
):
    try:
        start()
    except CaptureUnavailableError as error:
        assert str(error) == str(ABSENCE), error
    else:
        raise AssertionError(start)
""",
        environment={
            "OPPROF_ATTACH": "1",
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ["PYTHONPATH"]]),
        },
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
