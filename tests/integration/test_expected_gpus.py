"""This machine's devices, known before CUDA starts, over a management library of our own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.programs.children import answer_of

ASK = """
    import json
    from pytest_opprof.capture.environment import expected_fingerprint, fingerprint
    print(json.dumps([expected_fingerprint().get("gpu_arch"), fingerprint().get("gpu_arch")]))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of the library."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("managed")
    source = Path(__file__).with_name("managed_devices.c")
    command = [compiler, "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1"), str(source)]
    subprocess.run(command, check=True)
    return str(folder)


@pytest.mark.parametrize(
    ("devices", "visible", "expected"),
    [
        ("90", None, "9.0"),
        ("86 86", "1", "8.6"),
        ("90 86", None, None),
        ("90 0", None, None),
        ("", None, None),
        (None, None, None),
        ("90", "", None),
        ("90", "-1", None),
    ],
    ids=[
        "one",
        "alike",
        "different",
        "one that does not tell",
        "none",
        "no driver",
        "none visible",
        "none visible by number",
    ],
)
def test_identical_devices_are_expected(
    library: str, devices: str | None, visible: str | None, expected: str | None
) -> None:
    environment = {
        "LD_LIBRARY_PATH": library,
        "MANAGED_DEVICES": devices,
        "CUDA_VISIBLE_DEVICES": visible,
    }
    # a run's environment only has what CUDA reported
    assert answer_of(ASK, environment=environment) == [expected, None]


def test_library_is_unloaded(library: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    environment = {
        "LD_LIBRARY_PATH": library,
        "MANAGED_DEVICES": "90",
        "MANAGED_DEVICES_LOG": str(log),
        "CUDA_VISIBLE_DEVICES": None,
    }
    assert answer_of(ASK, environment=environment) == ["9.0", None]
    assert log.read_text() == "shut down\n"


def test_missing_library_expects_no_devices() -> None:
    assert answer_of(ASK, environment={"LD_LIBRARY_PATH": "/nonexistent"})[1] is None
