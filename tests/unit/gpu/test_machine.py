from gpu.machine import lacks


def test_the_gpu_is_asked_for_first() -> None:
    reason = lacks(("no_such_package",), gpu=lambda: "no driver", torch=lambda: "no torch")
    assert reason == "no driver"


def test_missing_torch_is_reported_second() -> None:
    assert lacks((), gpu=lambda: None, torch=lambda: "torch is built without CUDA") == (
        "torch is built without CUDA"
    )


def test_missing_imports_are_reported_last() -> None:
    reason = lacks(("json", "no_such_package"), gpu=lambda: None, torch=lambda: None)
    assert reason == "no_such_package is not installed"


def test_complete_machine_lacks_nothing() -> None:
    assert lacks(("json",), gpu=lambda: None, torch=lambda: None) is None
