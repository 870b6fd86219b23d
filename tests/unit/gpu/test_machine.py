from gpu.machine import lacks


def test_the_gpu_is_asked_for_first() -> None:
    reason = lacks(("no_such_package",), gpu=lambda: "no driver", torch=lambda: "no torch")
    assert reason == "no driver"


def test_then_the_other_side_of_the_comparison() -> None:
    assert lacks((), gpu=lambda: None, torch=lambda: "torch is built without CUDA") == (
        "torch is built without CUDA"
    )


def test_then_what_the_workload_imports() -> None:
    reason = lacks(("json", "no_such_package"), gpu=lambda: None, torch=lambda: None)
    assert reason == "no_such_package is not installed"


def test_nothing_is_lacking() -> None:
    assert lacks(("json",), gpu=lambda: None, torch=lambda: None) is None
