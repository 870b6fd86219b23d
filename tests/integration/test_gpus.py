"""The devices of a process, from its driver: the fake one, in programs that have started CUDA."""

import pytest
from support.programs.children import answer_of

pytestmark = pytest.mark.usefixtures("fake_cuda")
PRINT = """
    import json
    from pytest_opprof.capture.environment import fingerprint
    from pytest_opprof.capture.gpus import gpus
    fields = {key: value for key, value in fingerprint().items() if key in ("gpu_arch", "gpu_model", "cuda")}
    print(json.dumps({"fields": fields, "gpus": [[gpu.name, gpu.architecture] for gpu in gpus()]}))
"""


def test_devices_are_known_once_cuda_was_started() -> None:
    said = answer_of("    from support.cuda import fake_cuda\n    fake_cuda.load()\n" + PRINT)
    fields, found = said["fields"], said["gpus"]
    assert fields["gpu_arch"] == "9.0"
    assert fields["gpu_model"] == "Fake GPU 0, Fake GPU 1"
    assert fields["cuda"]
    assert found == [["Fake GPU 0", "9.0"], ["Fake GPU 1", "9.0"]]


@pytest.mark.parametrize(
    "start",
    ["", "from support.cuda import fake_cuda\n    fake_cuda.load(device=None)"],
    ids=["driver not loaded", "driver not initialized"],
)
def test_unstarted_cuda_is_not_started(start: str) -> None:
    assert answer_of(f"    {start}\n{PRINT}")["gpus"] == []


@pytest.mark.parametrize("symbol", ["cuDeviceGetCount", "cuDeviceGetName", "cuDeviceGetAttribute"])
def test_failing_driver_leaves_devices_unknown(symbol: str) -> None:
    fail = f"    from support.cuda import fake_cuda\n    fake_cuda.load().driver.fake_cuda_fail({symbol.encode()!r}, 999)\n"
    said = answer_of(fail + PRINT)
    assert said["gpus"] == []
    assert "gpu_arch" not in said["fields"]
