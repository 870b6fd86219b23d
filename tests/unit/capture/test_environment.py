"""The environment in which numbers were measured."""

import importlib.metadata
import os
import platform
import subprocess
import sys
from unittest.mock import MagicMock

import pytest

from pytest_opprof.capture.environment import details, fingerprint, settings
from pytest_opprof.capture.torch_ops import imported_torch
from pytest_opprof.metrics import FINGERPRINT_FIELDS
from pytest_opprof.metrics.fingerprint import SETTINGS


def test_metrics_depend_on_known_fields() -> None:
    assert fingerprint().keys() <= set(FINGERPRINT_FIELDS)


def test_fields_are_known_and_stable() -> None:
    fields = fingerprint()
    assert fields == fingerprint()
    assert fields["python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert fields["machine"] == platform.machine()
    assert int(fields["cpu_count"]) == len(os.sched_getaffinity(0))
    assert all(fields.values())


def test_what_a_process_cannot_change_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint()
    for name in ("machine", "python_implementation"):
        monkeypatch.setattr(platform, name, lambda: "another")
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "9.9.9")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set[int]())
    monkeypatch.setenv("PYTHONMALLOC", "malloc")
    assert fingerprint() == before


def test_imported_torch_is_described() -> None:
    torch = pytest.importorskip("torch")
    fields = fingerprint()
    assert fields["torch"] == torch.__version__
    assert fields["threads"] == str(torch.get_num_threads())
    assert fields["cpu_capability"]


def test_unimported_torch_is_described_without_importing() -> None:
    torch = pytest.importorskip("torch")
    program = f"{PRINTS.format('torch')}; import sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [torch.__version__, "False"]


def test_determinism_settings_are_recorded() -> None:
    torch = pytest.importorskip("torch")
    assert "deterministic" not in fingerprint().get("determinism", "").split()
    torch.use_deterministic_algorithms(True)  # torch's signature
    try:
        assert "deterministic" in fingerprint()["determinism"].split()
    finally:
        torch.use_deterministic_algorithms(False)  # torch's signature


def test_details_name_the_release() -> None:
    known = details()
    assert known["pytest"] == pytest.__version__
    assert known["pytest-opprof"]


def test_settings_are_a_part_of_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    fields = fingerprint()
    assert settings() == {name: fields[name] for name in SETTINGS if name in fields}
    assert settings()["threads"]
    monkeypatch.delitem(sys.modules, "torch")
    assert settings() == {}


def test_compiler_flags_are_recorded_without_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("TORCHINDUCTOR_MAX_AUTOTUNE", "1")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/somewhere")
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "2")
    told = fingerprint()["compile"].split()
    assert "TORCHINDUCTOR_MAX_AUTOTUNE=1" in told
    assert not any("_DIR=" in word or "_THREADS=" in word for word in told)


def test_workspace_of_cublas_is_a_matter_of_determinism(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    assert "CUBLAS_WORKSPACE_CONFIG=:4096:8" in fingerprint()["determinism"].split()


def test_reduced_matmul_precision_is_recorded() -> None:
    torch = pytest.importorskip("torch")
    before, usual = fingerprint().get("precision", ""), torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        assert "matmul=" in fingerprint()["precision"]
        assert fingerprint()["precision"] != before
    finally:
        torch.set_float32_matmul_precision(usual)


def test_numpy_blas_and_cpu_features_are_recorded() -> None:
    numpy = pytest.importorskip("numpy")
    built = numpy.show_config(mode="dicts")
    fields = fingerprint()
    assert fields["numpy"] == numpy.__version__
    assert fields["blas"].startswith(built["Build Dependencies"]["blas"]["name"])
    assert fields["numpy_cpu"].split() == built["SIMD Extensions"]["found"]


PRINTS = "from pytest_opprof.capture.environment import fingerprint; print(fingerprint().get('{}', ''))"


def test_numpy_is_not_imported_for_it() -> None:
    program = f"{PRINTS.format('blas')}; import sys; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["", "False"]


def test_disabled_numpy_features_are_left_out() -> None:
    numpy = pytest.importorskip("numpy")
    found = numpy.show_config(mode="dicts")["SIMD Extensions"]["found"]
    if not found:
        pytest.skip("NumPy has no code for more of this processor than its baseline")
    done = subprocess.run(
        [sys.executable, "-c", f"import numpy; {PRINTS.format('numpy_cpu')}"],
        env={**os.environ, "NPY_DISABLE_CPU_FEATURES": found[-1]},
        check=True,
        capture_output=True,
        text=True,
    )
    assert found[-1] not in done.stdout.split()


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, {}),
        ({"RANK": "3", "WORLD_SIZE": "8"}, {"rank": "3", "world_size": "8"}),
        ({"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "4"}, {"shard": "2 of 4"}),
        ({"CIRCLE_NODE_INDEX": "0", "CIRCLE_NODE_TOTAL": "4"}, {"shard": "1 of 4"}),
        ({"BUILDKITE_PARALLEL_JOB": "3", "BUILDKITE_PARALLEL_JOB_COUNT": "4"}, {"shard": "4 of 4"}),
        ({"CI_NODE_INDEX": "two", "CI_NODE_TOTAL": "4"}, {}),
    ],
)
def test_place_in_a_distributed_job_is_recorded(
    variables: dict[str, str], place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RANK", "WORLD_SIZE", "CI_NODE_INDEX", "CIRCLE_NODE_INDEX", "BUILDKITE_PARALLEL_JOB"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    known = details()
    assert {name: known[name] for name in ("rank", "world_size", "shard") if name in known} == place


def test_a_stub_of_torch_is_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", MagicMock())
    assert imported_torch() is None
