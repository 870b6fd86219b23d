"""What the numbers were measured on."""

import os
import platform
import sys

import pytest

from pytest_opprof.capture.environment import details, fingerprint
from pytest_opprof.metrics import FINGERPRINT_FIELDS


def test_fields_are_those_that_metrics_depend_on() -> None:
    assert fingerprint().keys() <= set(FINGERPRINT_FIELDS)


def test_fields_are_known_and_stable() -> None:
    fields = fingerprint()
    assert fields == fingerprint()
    assert fields["python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert fields["machine"] == platform.machine()
    assert int(fields["cpu_count"]) == len(os.sched_getaffinity(0))
    assert all(fields.values())


def test_torch_is_described_where_it_was_imported() -> None:
    torch = pytest.importorskip("torch")
    fields = fingerprint()
    assert fields["torch"] == torch.__version__
    assert fields["threads"] == str(torch.get_num_threads())
    assert fields["cpu_capability"]


def test_torch_is_not_imported_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert "torch" not in fingerprint()
    assert "torch" not in sys.modules


def test_determinism_is_told() -> None:
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
