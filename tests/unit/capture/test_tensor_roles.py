"""Roles of living tensors, in programs that also have unusual objects."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_opprof.capture.tensor_roles import tensor_roles

torch: Any = pytest.importorskip("torch")


def lazy_module() -> Any:
    return torch.nn.LazyLinear(3)


def stateless_optimizer() -> Any:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))])
    optimizer.state = None
    return optimizer


def result_as_parameter() -> Any:
    """Reading the gradient of a result warns."""
    module = torch.nn.Linear(2, 2)
    module._parameters["weight"] = torch.ones(2, requires_grad=True) * 2
    return module


def refusing_tensor() -> Any:
    class Refusing(torch.Tensor):  # type: ignore[misc]  # torch is untyped here
        @classmethod
        def __torch_function__(cls, *_: object, **__: object) -> Any:
            raise TypeError("not for you")

    module = torch.nn.Linear(2, 2)
    module._parameters["weight"] = torch.ones(2).as_subclass(Refusing)
    return module


def fake_module() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode  # slow to import

    with FakeTensorMode():
        return torch.nn.Linear(2, 2)


def place_of(tensor: Any) -> tuple[int, int, int]:
    return 0, -1, tensor.untyped_storage().data_ptr()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "unusual", [lazy_module, stateless_optimizer, result_as_parameter, refusing_tensor, fake_module]
)
def test_unusual_objects_hide_no_others(unusual: Any) -> None:
    odd: Any = unusual()
    usual: Any = torch.nn.Linear(2, 2)
    usual.bias.grad = torch.ones(2)
    roles = tensor_roles(torch)
    assert {place_of(usual.weight), place_of(usual.bias)} <= roles.parameters
    assert place_of(usual.bias.grad) in roles.gradients
    if unusual in {result_as_parameter, refusing_tensor}:
        assert place_of(odd.bias) in roles.parameters
