"""Our side of `make test-gpu` over the fake CUDA, and the command without a GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from gpu.machine import lacks_gpu
from gpu.recorded import STEPS, WINDOWS
from support.programs.children import answer_of

OURS = """
    import json
    from support.cuda import fake_cuda
    cuda = fake_cuda.load()
    from gpu.comparison import as_json
    from gpu.launch_cost import added_ns
    from gpu.machine import this_machine
    from gpu.recorded import profiler_of, windows

    def step():
        cuda.launch("_Z4gemmPfi", ns=20_000)
        cuda.graph("node", nodes=3, ns=1_000)
        cuda.memcpy(fake_cuda.HTOD, 4096, ns=500)
        cuda.memset(64, ns=500)
"""


@pytest.mark.usefixtures("fake_cuda")
def test_windows_hold_the_device_work() -> None:
    windows = answer_of(
        OURS + "    print(json.dumps(as_json(windows(profiler_of('ours'), step, cuda.synchronize))))"
    )
    assert len(windows) == WINDOWS
    for window in windows:
        assert window["unlaunched"] == 0
        counts = {name.partition(" (")[0]: count for name, count in window["counts"].items()}
        assert counts == {
            "gemm(float*, int)": STEPS,
            "node": 3 * STEPS,
            "Memcpy HtoD": STEPS,
            "Memset": STEPS,
        }
        # a record's times are as exact as the clock's ticks
        assert window["device_ns"] == pytest.approx(STEPS * 24_000, abs=6 * STEPS)


@pytest.mark.usefixtures("fake_cuda")
def test_launches_are_timed_on_our_side() -> None:
    added = answer_of(
        OURS + "    print(json.dumps(added_ns(lambda: cuda.launch(ns=1), cuda.synchronize, 'ours')))"
    )
    assert isinstance(added, float)


@pytest.mark.usefixtures("fake_cuda")
def test_machine_is_described_without_its_folders() -> None:
    machine = answer_of(
        OURS
        + "    machine = this_machine()\n    print(json.dumps([machine.gpu, machine.cuda, machine.cupti]))"
    )
    assert all(machine)
    assert machine[2].startswith("libcupti.so.12 (API ")


def test_command_without_a_gpu_fails_in_one_sentence(repository: Path) -> None:
    if lacks_gpu() is None:
        pytest.skip("there is a GPU here")
    done = subprocess.run(
        [sys.executable, "-m", "gpu"],
        env={**os.environ, "PYTHONPATH": str(repository / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("nothing was tested on a GPU: ")
    assert done.stderr.count("\n") == 1
