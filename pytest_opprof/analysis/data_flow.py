"""Which op reads, writes, allocates and frees which version of which storage.

The model is torch's ``_memory_profiler.DataFlowGraph``: its nodes are the topmost ops that torch has a schema
for, autograd's nodes, and memory changes outside of these. A storage is known by its address and by how often
that was allocated. What is unknown about one storage (no allocation was recorded, or a second free) does not
affect any other.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.capture.op_values import item_bytes
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.tensor_roles import Place
from pytest_opprof.kinds import BACKWARD_SCOPE, EventKind


@dataclass(slots=True, kw_only=True)
class Storage:
    """One block of memory, from its allocation to its free."""

    place: Place  # its device and address
    nbytes: int = 0  # its size; if it is from before the window, the largest known span of its tensors
    taken_ns: int | None = None  # when it was allocated, from the window's start; None if before
    given_back_ns: int | None = None  # when it was freed, from the window's start; None if later


Version = tuple[int, int]  # index of a storage, and how often it was written to before


@dataclass(slots=True, kw_only=True)
class FlowNode:
    """An op, or a change of memory outside of all ops."""

    row: int
    start_ns: int  # from the window's start
    is_backward: bool
    reads: dict[int, int] = field(default_factory=dict)  # the version of each storage that existed before
    writes: set[int] = field(default_factory=set)  # those of `reads` that it may have changed
    takes: set[int] = field(default_factory=set)  # storages allocated in it
    gives_back: set[int] = field(default_factory=set)  # storages freed in it

    @property
    def inputs(self) -> set[Version]:
        """The versions that it depends on."""
        return set(self.reads.items())

    @property
    def outputs(self) -> set[Version]:
        """The versions that it leaves: new storages, and new versions of old ones."""
        new = {(storage, 0) for storage in self.takes - self.gives_back}
        return new | {(storage, self.reads[storage] + 1) for storage in self.writes}

    @property
    def intermediates(self) -> set[int]:
        """Storages allocated and freed within it."""
        return self.takes & self.gives_back


class DataFlow:
    """The storages of a recording, and the nodes that use them."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._written = functools.cache(written_inputs)  # asks torch once for each op and types
        self._used: dict[int, list[tuple[int, bool | None]]] = {}  # by event: storages, and if written to
        self._changed: dict[int, int] = {}  # by event of memory: the storage
        self._live: dict[Place, int] = {}
        self._ops: set[int] = set()
        self._of_tensors: set[int] = set()
        self.storages: list[Storage] = []  # in the order in which they were first seen
        self.gradients: set[int] = set()  # storages that autograd accumulated a gradient in
        for row in sorted(range(len(recording)), key=recording.start_ns.__getitem__):
            if recording.kind[row] == EventKind.MEMORY:
                self._change(row)
            elif recording.kind[row] == EventKind.TORCH:
                self._use(row)
        self.nodes = sorted(self._nodes(), key=lambda node: (node.start_ns, node.row))  # in start order
        self._count_versions()

    def at_end(self, place: Place) -> int | None:
        """The storage at an address when the window closed; None if none is known."""
        return self._live.get(place)

    def _change(self, row: int) -> None:
        change = self._recording.memory(row)
        if change is None or change.address == 0:
            return
        place = (change.device_type, change.device_index, change.address)
        now = self._recording.start_ns[row]
        if change.nbytes > 0:
            self.storages.append(Storage(place=place, nbytes=change.nbytes, taken_ns=now))
            self._changed[row] = self._live[place] = len(self.storages) - 1
            return
        known = self._live.pop(place, None)
        if known is not None:
            self.storages[known].given_back_ns = now
            self._changed[row] = known

    def _use(self, row: int) -> None:
        inputs, identities = self._recording.inputs(row), self._recording.identities(row)
        if inputs is None or identities is None:
            return
        written = self._written(self._recording.name(row), tuple(inputs.dtypes))
        if written is not None or self._recording.scope[row] == BACKWARD_SCOPE:
            self._ops.add(row)
        used = self._used[row] = []
        for number, tensors in enumerate(identities):
            for tensor in tensors:
                if tensor is None or not tensor.storage:
                    continue
                place = (tensor.device_type, tensor.device_index, tensor.storage)
                if place not in self._live:
                    self.storages.append(Storage(place=place))
                    self._live[place] = len(self.storages) - 1
                storage = self._live[place]
                self._of_tensors.add(storage)
                self._widen(storage, inputs, number)
                used.append((storage, None if written is None else written[number]))
        self._note_gradient(row)

    def _widen(self, storage: int, inputs: Inputs, number: int) -> None:
        """A block from before the window has at least the bytes that this tensor spans."""
        block = self.storages[storage]
        each_bytes = item_bytes().get(inputs.dtypes[number])  # None for a list, whose members have no type
        if block.taken_ns is None and each_bytes is not None:
            pairs = zip(inputs.shapes[number], inputs.strides[number], strict=True)
            block.nbytes = max(block.nbytes, max((a * b for a, b in pairs), default=1) * each_bytes)

    def _note_gradient(self, row: int) -> None:
        """Note the gradient that the first op in AccumulateGrad keeps by `detach`, or adds another to."""
        recording = self._recording
        parent, used = recording.parent[row], self._used[row]
        if (
            used
            and parent >= 0
            and parent == row - 1
            and recording.name(row) in {"aten::detach", "aten::add_"}
            and recording.name(parent) == "torch::autograd::AccumulateGrad"
        ):
            self.gradients.add(used[0][0])

    def _nodes(self) -> Iterator[FlowNode]:
        recording, row = self._recording, 0
        while row < len(recording):
            if row not in self._ops and row not in self._changed:
                row += 1
                continue
            end = row + 1
            while end < len(recording) and recording.parent[end] >= row:
                end += 1
            yield self._node(row, end)
            row = end

    def _node(self, row: int, end: int) -> FlowNode:
        recording = self._recording
        node = FlowNode(row=row, start_ns=recording.start_ns[row], is_backward=self._is_backward(row))
        written: dict[int, set[bool | None]] = {}
        for inside in range(row, end):
            for storage, is_written in self._used.get(inside, ()):
                written.setdefault(storage, set()).add(is_written)
            storage = self._changed.get(inside, -1)
            if storage in self._of_tensors:  # leaves out a kernel's own buffers
                is_taken = self.storages[storage].taken_ns == recording.start_ns[inside]
                (node.takes if is_taken else node.gives_back).add(storage)
        node.reads = dict.fromkeys((written.keys() | node.gives_back) - node.takes, 0)
        # A storage counts as written to if no op that used it has a schema.
        said = {storage: written.get(storage, {False}) for storage in node.reads.keys() - node.gives_back}
        node.writes = {storage for storage, told in said.items() if True in told or told == {None}}
        return node

    def _is_backward(self, row: int) -> bool:
        while row >= 0:
            if self._recording.scope[row] == BACKWARD_SCOPE:
                return True
            row = self._recording.parent[row]
        return False

    def _count_versions(self) -> None:
        versions: dict[int, int] = {}
        for node in self.nodes:
            for storage in node.reads:
                node.reads[storage] = versions.get(storage, 0)
            for storage in node.writes:
                versions[storage] = node.reads[storage] + 1


def written_inputs(name: str, dtypes: tuple[str, ...]) -> tuple[bool, ...] | None:
    """For each input of an op, whether it may be written to; None if it is not an op of torch.

    Overloads are not recorded, so an input counts as written to if any overload that takes such inputs writes
    to it. Without torch, only the name tells: ``aten::add_`` writes to its first input.
    """
    if "::" not in name:
        return None
    places = range(len(dtypes))
    torch = sys.modules.get("torch")
    if torch is None:
        return tuple(place == 0 and name.endswith("_") for place in places)
    try:
        schemas = torch._C._jit_get_schemas_for_operator(name)  # noqa: SLF001  # as torch's profiler asks
    except RuntimeError:  # a C++ range may have such a name without being an op
        return None
    fitting = [
        schema.arguments
        for schema in schemas
        if len(schema.arguments) == len(dtypes)
        and all(_takes(str(one.type), dtype) for one, dtype in zip(schema.arguments, dtypes, strict=True))
    ]
    if not fitting:
        return None
    written_to = [[getattr(one.alias_info, "is_write", False) for one in arguments] for arguments in fitting]
    return tuple(any(overload[place] for overload in written_to) for place in places)


def _takes(wanted: str, dtype: str) -> bool:
    if wanted.startswith("Optional["):
        return not dtype or _takes(wanted.removeprefix("Optional[").removesuffix("]"), dtype)
    if wanted == "Tensor":
        # An undefined tensor has no type, but is a tensor.
        return dtype not in {"TensorList", "Scalar", "ScalarList"}
    if wanted.startswith("List["):
        return dtype in ({"TensorList", ""} if "Tensor" in wanted else {"ScalarList", "Scalar", ""})
    return dtype in {"Scalar", ""}
