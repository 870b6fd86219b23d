"""Roles of the tensors alive when a window closes: parameters, gradients, optimizer state."""

from __future__ import annotations

import contextlib
import gc
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

DEVICES: Final = {"cpu": 0, "cuda": 1, "xpu": 12}  # torch's numbers
Place = tuple[int, int, int]  # type and index of the device, address of the storage


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRoles:
    """Where the storages of known tensors are."""

    parameters: set[Place] = field(default_factory=set)
    gradients: set[Place] = field(default_factory=set)
    optimizer_state: set[Place] = field(default_factory=set)


def tensor_roles(torch: Any) -> TensorRoles:
    """Ask all living modules and optimizers; this walks over all objects of the program.

    Objects and tensors that cannot be asked have no role, and what torch warns of is not about the program.
    """
    module, optimizer = torch.nn.Module, torch.optim.Optimizer
    roles = TensorRoles()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for thing in gc.get_objects():
            kind = type(thing)  # an object's own `__class__` may be anything, or raise
            with contextlib.suppress(Exception):
                if issubclass(kind, module):
                    for parameter in thing.__dict__.get("_parameters", {}).values():
                        roles.parameters.update(_places(torch, parameter))
                        roles.gradients.update(_places(torch, parameter, of_gradient=True))
                elif issubclass(kind, optimizer):
                    for values in thing.__dict__.get("state", {}).values():
                        for value in values.values() if isinstance(values, dict) else ():
                            roles.optimizer_state.update(_places(torch, value))
    return roles


def _places(torch: Any, tensor: Any, *, of_gradient: bool = False) -> Iterator[Place]:
    if not isinstance(tensor, torch.Tensor):
        return
    try:
        tensor = tensor.grad if of_gradient else tensor
        address = tensor.untyped_storage().data_ptr()
        kind = DEVICES.get(tensor.device.type)
        index = tensor.device.index
    except Exception:  # noqa: BLE001  # no gradient, no real storage, or a subclass that refuses
        return
    if kind is not None and address:
        yield kind, -1 if index is None else index, address
