"""``opprof doctor`` on CUDA: the libcupti that it would use, or why there is none."""

from pathlib import Path

import pytest
from support.programs.children import run_python

from pytest_opprof.capture.cuda import has_driver

pytestmark = pytest.mark.usefixtures("fake_cuda")


def doctor(**environment: str) -> str:
    """The line on CUDA."""
    done = run_python("from pytest_opprof.cli.main import main; main(['doctor'])", environment=environment)
    return next(line for line in done.stdout.splitlines() if line.startswith("CUDA"))


@pytest.mark.slow
def test_doctor_says_which_libcupti_it_would_use(fake_cuda_folder: Path) -> None:
    cupti = fake_cuda_folder / "cupti-13" / "libcupti.so.13"
    line = doctor(LD_LIBRARY_PATH=str(fake_cuda_folder), OPPROF_CUPTI_PATH=str(cupti))
    assert line.split() == ["CUDA", "ok", str(cupti), "(API", "130001)"]


@pytest.mark.slow
def test_doctor_says_why_there_is_no_cuda(fake_cuda_folder: Path) -> None:
    named = doctor(LD_LIBRARY_PATH=str(fake_cuda_folder), OPPROF_CUPTI_PATH="/nowhere/libcupti.so")
    assert "OPPROF_CUPTI_PATH: /nowhere/libcupti.so: cannot open shared object file" in named


@pytest.mark.skipif(has_driver(), reason="there is a driver on this machine")
def test_doctor_says_that_there_is_no_driver() -> None:
    line = doctor()
    assert line.split()[1] == "absent"
    assert "libcuda.so.1 not found" in line
