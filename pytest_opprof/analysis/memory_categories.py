"""The role of each version of each storage in a training step: torch's eight categories.

The rules and their order are those of torch's ``_memory_profiler.MemoryProfile``. Torch's tracer reads
parameters and optimizer state from Python calls; we ask the live modules and optimizers when the window
closes (`capture.tensor_roles`). The rest is deduced from the data flow, as in torch.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from pytest_opprof.analysis.data_flow import DataFlow, Version
from pytest_opprof.capture.tensor_roles import Place, TensorRoles


class Category(enum.IntEnum):
    """Torch's categories, numbered as the columns that torch writes."""

    PARAMETER = 0
    OPTIMIZER_STATE = 1
    INPUT = 2
    TEMPORARY = 3
    ACTIVATION = 4
    GRADIENT = 5
    AUTOGRAD_DETAIL = 6
    UNKNOWN = 7


_OF_LOSS = frozenset({Category.GRADIENT, Category.PARAMETER})


class Categories:
    """The categories of a flow's storages: of a storage as a whole, or of one version of it."""

    def __init__(self, flow: DataFlow, roles: TensorRoles) -> None:
        self._flow = flow
        self._whole = dict.fromkeys(flow.gradients, Category.GRADIENT)
        self._temporary = set[int]().union(*(node.intermediates for node in flow.nodes))
        self._versions: dict[Version, Category] = {}
        self._set_whole(roles.gradients, Category.GRADIENT)
        self._set_whole(roles.parameters, Category.PARAMETER)
        self._set_inputs()
        self._set_parameters_by_flow()
        self._set_activations()
        self._set_whole(roles.optimizer_state, Category.OPTIMIZER_STATE)
        self._set_autograd_details()

    def of(self, version: Version) -> Category:
        """The category of a version of a storage."""
        storage, _ = version
        if storage in self._whole:
            return self._whole[storage]
        if storage in self._temporary:
            return Category.TEMPORARY
        return self._versions.get(version, Category.UNKNOWN)

    def _set_whole(self, places: Iterable[Place], category: Category) -> None:
        for place in places:
            storage = self._flow.at_end(place)
            if storage is not None:
                self._whole[storage] = category

    def _depending_on_gradients(self) -> set[int]:
        """Storages with any version that is a gradient or parameter an op reads, or is computed from one."""
        found: set[int] = set()
        size = -1
        while size != len(found):
            size = len(found)
            for node in self._flow.nodes:
                sources = {s for s, v in node.inputs if s in found or self.of((s, v)) in _OF_LOSS}
                if sources:
                    found |= sources | {storage for storage, _ in node.outputs}
        return found

    def _set_inputs(self) -> None:
        """Inputs: what the loss is computed from, and no gradient flows back into."""
        depending = self._depending_on_gradients()
        useful: set[Version] = set()
        for node in reversed(self._flow.nodes):
            versions = node.inputs | node.outputs
            if any(version in useful or self.of(version) in _OF_LOSS for version in versions):
                useful |= versions
        for node in self._flow.nodes:
            if node.is_backward:
                useful -= node.outputs
        for version in useful:
            if version[0] not in depending:
                self._versions.setdefault(version, Category.INPUT)

    def _set_parameters_by_flow(self) -> None:
        """Parameters: what the forward pass uses besides inputs, and both makes and depends on gradients."""
        every = set[Version]().union(*(node.inputs | node.outputs for node in self._flow.nodes))
        forward = {version for version in every if self.of(version) is Category.INPUT}
        candidates: set[Version] = set()
        for node in self._flow.nodes:
            versions = node.inputs | node.outputs
            if (
                not node.is_backward
                and forward & node.inputs
                and not any(self.of(version) is Category.GRADIENT for version in versions)
            ):
                forward |= node.outputs
                candidates |= node.inputs - forward
        useful: set[Version] = set()
        for node in reversed(self._flow.nodes):
            if any(version in useful or self.of(version) is Category.GRADIENT for version in node.outputs):
                useful |= node.inputs
        found = {storage for storage, _ in candidates & useful} & self._depending_on_gradients()
        self._whole.update(dict.fromkeys(found, Category.PARAMETER))

    def _set_activations(self) -> None:
        """Activations: what the forward pass makes of inputs and other activations."""
        sources = {Category.INPUT, Category.ACTIVATION}
        allowed = sources | {Category.PARAMETER, Category.TEMPORARY}
        for node in self._flow.nodes:
            found = {self.of(version) for version in node.inputs}
            if found & sources and found <= allowed and not node.is_backward:
                for version in node.outputs:
                    self._versions.setdefault(version, Category.ACTIVATION)

    def _set_autograd_details(self) -> None:
        undecided = {Category.UNKNOWN, Category.AUTOGRAD_DETAIL}
        for node in self._flow.nodes:
            for storage, version in node.outputs if node.is_backward else ():
                if version == 0 or self.of((storage, version - 1)) in undecided:
                    self._versions.setdefault((storage, version), Category.AUTOGRAD_DETAIL)
