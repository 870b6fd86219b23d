"""Torch's ops as our observer records them, against torch.profiler's own record of them.

O1: both record one and the same execution, and must agree event by event. O2: they record two runs of one
program, and must agree on how often each op ran.
"""

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support.kineto.torch_releases import experimental, tells_inputs
from support.programs.windows import RANGES_AND_OPS, Window, names

from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.capture.recording import Recording

pytestmark = pytest.mark.usefixtures("torch")

NO_INPUTS = Inputs(shapes=[], strides=[], dtypes=[], concrete=[])


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One event in either recording."""

    name: str
    parent: int
    scope: int
    sequence_nr: int
    forward_thread: int
    shapes: list[Any]
    strides: list[Any]
    dtypes: list[str]
    concrete: list[str]


def seen_by_us(recording: Recording) -> list[Seen]:
    seen = []
    for event in range(len(recording)):
        inputs = recording.inputs(event) or NO_INPUTS
        seen.append(
            Seen(
                name=recording.name(event),
                parent=recording.parent[event],
                scope=recording.scope[event],
                sequence_nr=recording.sequence_nr[event],
                forward_thread=recording.forward_thread[event],
                shapes=inputs.shapes,
                strides=inputs.strides,
                dtypes=inputs.dtypes,
                concrete=[repr(value) for value in inputs.concrete],
            )
        )
    return seen


def seen_by_torch(torch: Any, profiler: Any) -> list[Seen]:
    """Torch's events by correlation number, which is the order of start."""
    results = profiler.profiler.kineto_results
    events = sorted(results.events(), key=lambda event: event.correlation_id())
    place = {event.correlation_id(): index for index, event in enumerate(events)}
    parents = parents_in_tree(results)
    return [
        Seen(
            name=event.name(),
            parent=place.get(parents[event.correlation_id()], -1),
            scope=event.scope(),
            sequence_nr=event.sequence_nr(),
            forward_thread=event.fwd_thread_id(),
            shapes=event.structured_input_shapes() if tells_inputs(torch) else event.shapes(),
            strides=event.structured_input_strides() if tells_inputs(torch) else [],
            dtypes=event.dtypes(),
            concrete=[repr(value) for value in event.concrete_inputs()],
        )
        for event in events
    ]


def parents_in_tree(results: Any) -> dict[int, int]:
    waiting = [(0, root) for root in results.experimental_event_tree()]
    parents = {}
    while waiting:
        parent, node = waiting.pop()
        parents[node.correlation_id] = parent
        waiting += [(node.correlation_id, child) for child in node.children]
    return parents


def recorded_by_both(
    torch: Any, program: Callable[[], object], *, ours_first: bool, record_shapes: bool = True
) -> tuple[list[Seen], list[Seen]]:
    collector = Collector.instance()
    collector.open(sources=RANGES_AND_OPS)
    profiler = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=record_shapes
    )
    if ours_first:
        collector.start(record_shapes=record_shapes)
        profiler.start()
        program()
        profiler.stop()
        recording = collector.stop()
    else:
        profiler.start()
        collector.start(record_shapes=record_shapes)
        program()
        recording = collector.stop()
        profiler.stop()
    ours, theirs = seen_by_us(recording), seen_by_torch(torch, profiler)
    if not tells_inputs(torch):
        told = [_as_told_without_lists(event) for event in zip(ours, theirs, strict=True)]
        return [event for event, _ in told], [event for _, event in told]
    return ours, theirs


def _as_told_without_lists(pair: tuple[Seen, Seen]) -> tuple[Seen, Seen]:
    """Both without strides; without shapes, too, if an input is a list of tensors."""
    ours, theirs = (replace(event, strides=[]) for event in pair)
    if any(isinstance(size, list) for shape in ours.shapes for size in shape):
        return replace(ours, shapes=[]), replace(theirs, shapes=[])
    return ours, theirs


# ---- O1 ----


@pytest.fixture
def encoder_step(torch: Any) -> Callable[[], None]:
    """Forward and backward of a Transformer encoder, warmed up: first steps differ from later ones."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    batch = torch.randn(2, 16, 64)

    def step() -> None:
        with torch.profiler.record_function("forward"):
            scores = model(batch)
        scores.sum().backward()

    for _ in range(3):
        step()
    return step


@pytest.mark.parametrize("ours_first", [True, False], ids=["ours-first", "torch-first"])
@pytest.mark.parametrize("record_shapes", [True, False], ids=["shapes", "plain"])
def test_both_see_the_same_encoder_step(
    torch: Any, encoder_step: Callable[[], None], *, ours_first: bool, record_shapes: bool
) -> None:
    ours, theirs = recorded_by_both(torch, encoder_step, ours_first=ours_first, record_shapes=record_shapes)
    assert len(ours) > 1000
    assert ours == theirs
    assert {event.scope for event in ours} == {0, 1, 7}
    assert any(event.forward_thread for event in ours)
    assert bool(ours[-1].dtypes or ours[1].dtypes) == record_shapes


def quick_ranges(torch: Any) -> None:
    with torch._C._profiler._RecordFunctionFast("fast range"), torch.profiler.record_function("range"):
        torch.ones(2).add(1)


def ops_that_raise(torch: Any) -> None:
    with pytest.raises(RuntimeError), torch.profiler.record_function("raises"):
        torch.ones(2, 3) @ torch.ones(2, 3)
    torch.ones(2)


def every_dtype(torch: Any) -> None:
    small = [f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)]
    floats = ["float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e8m0fnu"]
    usual = ["uint8", "int8", "int16", "int32", "int64", "half", "float", "double", "bfloat16", "bool"]
    rare = ["complex32", "complex64", "complex128", "uint16", "uint32", "uint64", "float4_e2m1fn_x2"]
    for dtype in (name for name in [*usual, *rare, *floats, *small] if hasattr(torch, name)):
        torch.empty(2, dtype=getattr(torch, dtype)).detach()


def quantized(torch: Any) -> None:
    for dtype in (torch.qint8, torch.quint8, torch.qint32):
        torch._empty_affine_quantized([2], scale=1, zero_point=0, dtype=dtype).detach()


def convolution_backward(torch: Any) -> None:
    ones = torch.ones(1, 1, 3, 3)
    sizes = ([1], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, False, True])
    torch.ops.aten.convolution_backward(ones, ones, torch.ones(1, 1, 1, 1), *sizes)


# each has one kind of input
INPUTS: dict[str, Callable[[Any], object]] = {
    "quick-ranges": quick_ranges,
    "ops-that-raise": ops_that_raise,
    "dtypes": every_dtype,
    "quantized": quantized,
    "nested": lambda torch: (
        torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged) * 2
    ),
    "sparse": lambda torch: torch.sparse.mm(torch.eye(3).to_sparse(), torch.ones(3, 2)),
    "sparse-rows": lambda torch: torch.eye(3).to_sparse_csr() @ torch.ones(3),
    "mkldnn": lambda torch: torch.ones(2, 3).to_mkldnn().to_dense(),
    "tensor-list": lambda torch: torch.cat([torch.ones(2, 3), torch.ones(1, 3)]),
    "two-tensor-lists": lambda torch: torch._foreach_add([torch.ones(1)], [torch.ones(2)], alpha=2),
    "optional-tensor-list": lambda torch: torch.ones(4, 4)[torch.tensor([0, 1]), :, None],
    "optional-none": lambda torch: torch.clamp(torch.ones(3), min=0.0),
    "double": lambda torch: torch.add(torch.ones(3), torch.ones(3), alpha=0.1),
    "infinity": lambda torch: torch.full((2,), float("inf")),
    "nan": lambda torch: torch.full((2,), float("nan")),
    "large-integer": lambda torch: torch.full((1,), 2**62),
    "negative-integer": lambda torch: torch.full((1,), -(2**62)).sum(-1),
    "large-size": lambda torch: torch.empty(1).expand(2**33)[:5],
    "high-rank": lambda torch: torch.ones([1] * 60).sum(),
    "30-integers": lambda torch: torch.ones([1] * 30),
    "31-integers": lambda torch: torch.ones([1] * 31),
    "empty-list": lambda torch: torch.ones([]),
    "booleans": convolution_backward,
    "doubles": lambda torch: torch._foreach_mul([torch.ones(1)] * 3, [1.0, 2.5, 3.0]),
    "text": lambda torch: torch.div(torch.ones(3), torch.ones(3), rounding_mode="floor"),
    "equation": lambda torch: torch.einsum("ij,jk->ik", torch.ones(2, 2), torch.ones(2, 2)),
    "no-elements": lambda torch: torch.ones(0, 3).sum(),
    "no-dimensions": lambda torch: torch.tensor(3.0) * 2,
    "conjugate": lambda torch: torch.ones(2, dtype=torch.complex64).conj() + 1,
    "meta-device": lambda torch: torch.empty(3, device="meta") + 1,
    "generator": lambda torch: torch.randn(3, generator=torch.Generator()),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch has one for each rare kind of input
@pytest.mark.parametrize("name", INPUTS)
def test_both_see_the_same_inputs(torch: Any, name: str) -> None:
    def program() -> None:
        INPUTS[name](torch)

    program()
    ours, theirs = recorded_by_both(torch, program, ours_first=True)
    assert ours
    assert ours == theirs


# ---- O2 ----


def counted_by_us(program: Callable[[], object]) -> Counter[str]:
    with Window(sources=RANGES_AND_OPS) as window:
        program()
    return Counter(names(window.recording))


def counted_by_torch(torch: Any, program: Callable[[], object], *, all_threads: bool) -> Counter[str]:
    everything = experimental(torch, profile_all_threads=True) if all_threads else None
    profiler = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], experimental_config=everything
    )
    with profiler:
        program()
    return Counter(event.name() for event in profiler.profiler.kineto_results.events())


def check_counts(torch: Any, program: Callable[[], object], *, all_threads: bool = False) -> None:
    for _ in range(3):
        program()
    ours, theirs, ours_again = (
        counted_by_us(program),
        counted_by_torch(torch, program, all_threads=all_threads),
        counted_by_us(program),
    )
    assert ours == theirs
    assert ours == ours_again


def test_both_count_the_same_ops_of_the_example(
    torch: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(repository)
    from examples.model import Training, batches

    training, batch = Training(seed=0), next(batches(seed=0))
    check_counts(torch, lambda: training.step(*batch))


@pytest.mark.parametrize(
    "name", ["add", "linear, forward and backward", "encoder, forward", "encoder, forward and backward"]
)
def test_both_count_the_same_ops_of_a_workload(
    torch: Any, repository: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.syspath_prepend(repository)
    from benchmarks.workloads import torch_workloads

    (workload,) = (one for one in torch_workloads() if one.name == name)
    check_counts(torch, lambda: workload.loop(3))


@pytest.fixture
def two_threads(torch: Any) -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.mark.usefixtures("two_threads")
def test_both_count_the_same_ops_with_threads_of_torch(
    torch: Any, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(repository)
    from examples.model import Training, batches

    training, batch = Training(seed=0), next(batches(seed=0))
    check_counts(torch, lambda: training.step(*batch), all_threads=True)


def test_both_count_the_same_ops_of_four_threads(torch: Any) -> None:
    def work() -> None:
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.Linear(4, 1))
        with torch.profiler.record_function("work"):
            model(torch.ones(2, 4)).sum().backward()

    def program() -> None:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    check_counts(torch, program, all_threads=True)
    assert counted_by_us(program)["work"] == 4


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
    "ignore::UserWarning",
    "ignore:Guards may run slower on Python 3.13.0:RuntimeWarning",
)
def test_both_count_the_same_ops_of_a_compiled_model(torch: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 8))
    compiled, batch = torch.compile(model), torch.randn(4, 8)
    check_counts(torch, lambda: compiled(batch).sum().backward())
    counts = counted_by_us(lambda: compiled(batch).sum().backward())
    assert counts["Torch-Compiled Region: 0/0"] == 1
    graphs = "## Call CompiledFxGraph"  # which torch 2.6 does not report
    tells = graphs in inspect.getsource(torch._inductor.output_code)
    assert sum(count for name, count in counts.items() if name.startswith(graphs)) == 2 * tells
