"""FLOPs of recorded ops, against torch's own counter of dispatched calls."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pytest_opprof import ProfilerActivity, profile, record_function, register_flop_formula
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.capture.torch_ops import WORK
from pytest_opprof.errors import UsageError
from pytest_opprof.events import flops
from pytest_opprof.results.names import STEP_NAME

pytestmark = pytest.mark.usefixtures("torch")

ELEMENTWISE = ("aten::mul", "aten::add")  # torch.profiler counts them, torch's counter does not


@pytest.fixture
def formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formulas of this test only."""
    monkeypatch.setattr(flops, "_registered", dict(flops._registered))


def recorded(work: Callable[[], object]) -> profile:
    with profile(activities=[ProfilerActivity.CPU], with_flops=True) as prof:
        work()
    return prof


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector, closed again afterwards."""
    collector = Collector.instance()
    yield collector
    if collector.recording:
        collector.stop()
    collector.open(sources=frozenset({"ranges"}))


def convolve(torch: Any, rank: int, *, transposed: bool = False, **arguments: Any) -> Callable[[], object]:
    kind = f"Conv{'Transpose' if transposed else ''}{rank}d"
    layer = getattr(torch.nn, kind)(4, 6, 3, **arguments)
    image = torch.randn(2, 4, *[9] * rank, requires_grad=True)
    return lambda: layer(image).sum().backward()


def attend(
    torch: Any,
    backend: str,
    *,
    one: tuple[int, int] = (2, 4),  # the batch and heads of the query
    other: tuple[int, int] = (2, 4),
    **arguments: Any,
) -> Callable[[], object]:
    sizes = [(*one, 8, 16), (*other, 12, 16), (*other, 12, 16)]
    query, key, value = (torch.randn(size, requires_grad=True) for size in sizes)

    def work() -> None:
        with torch.nn.attention.sdpa_kernel(getattr(torch.nn.attention.SDPBackend, backend)):
            made = torch.nn.functional.scaled_dot_product_attention(query, key, value, **arguments)
            made.sum().backward()

    return work


def scripted(torch: Any, source: str) -> Callable[[], object]:
    """A call of TorchScript's, whose variables lie on the stack that its ops take their inputs from."""
    function = getattr(torch.jit.CompilationUnit(source), "f")  # noqa: B009  # mypy knows no such attribute
    inputs = torch.randn(4, 8), torch.randn(8, 8)
    return lambda: function(*inputs)


PROGRAMS: dict[str, Callable[[Any], Callable[[], object]]] = {
    "linear": lambda t: lambda: t.nn.Linear(8, 5)(t.randn(3, 7, 8)).sum().backward(),
    "linear of a vector": lambda t: lambda: t.nn.functional.linear(t.randn(8), t.randn(3, 8)),
    "matmul": lambda t: lambda: t.randn(5, 1, 3, 4) @ t.randn(6, 4, 2),
    "einsum": lambda t: (
        lambda: t.einsum("bij,bjk,kl->bil", t.randn(2, 3, 4), t.randn(2, 4, 5), t.randn(5, 6))
    ),
    "tensordot": lambda t: lambda: t.tensordot(t.randn(3, 4, 5), t.randn(4, 5, 6), dims=2),
    "chain": lambda t: lambda: t.linalg.multi_dot([t.randn(3, 4), t.randn(4, 5), t.randn(5, 6)]),
    "conv1d": lambda t: convolve(t, 1, padding=1),
    "conv2d": lambda t: convolve(t, 2, stride=2, dilation=2),
    "conv2d, same": lambda t: convolve(t, 2, padding="same", dilation=2),
    "conv3d": lambda t: convolve(t, 3, stride=(1, 2, 3)),
    "transposed 1d": lambda t: convolve(t, 1, transposed=True, stride=2),
    "transposed 2d": lambda t: convolve(t, 2, transposed=True, padding=1),
    "transposed 3d": lambda t: convolve(t, 3, transposed=True),
    "attention by products": lambda t: attend(t, "MATH"),
    "attention of one query": lambda t: attend(t, "MATH", one=(1, 4)),
    "attention of one head": lambda t: attend(t, "MATH", one=(2, 1)),
    "attention to one head": lambda t: attend(t, "MATH", other=(2, 1)),
    "attention of groups": lambda t: attend(t, "MATH", other=(2, 2), enable_gqa=True),
    "script": lambda t: scripted(t, "def f(x, y):\n    return x + torch.mm(torch.mm(x, y), y)\n"),
    "gradient of a function": lambda t: (
        lambda: t.func.grad(lambda x: (x @ t.ones(8, 5)).sum())(t.randn(3, 8))
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_totals_match_torchs_counter(torch: Any, program: str) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    work = PROGRAMS[program](torch)
    with FlopCounterMode(display=False) as counter:
        work()
    prof = recorded(work)
    counted = sum(row.counted_flops for row in prof.key_averages() if row.key not in ELEMENTWISE)
    assert counted == counter.get_total_flops()
    assert counted > 0


def flops_once(prof: profile) -> Counter[str]:
    """By name, the FLOPs of events that are in no other event of their name."""
    found = Counter[str]()
    for event in prof.events():
        around = event.cpu_parent
        while around is not None and around.name != event.name:
            around = around.cpu_parent
        found[event.name] += 0 if around else event.flops or 0
    return found


@pytest.mark.parametrize("most_events", [0, 3], ids=["kept", "summed"])
@pytest.mark.parametrize("program", [*PROGRAMS, "fused attention"])
def test_flops_do_not_need_recorded_inputs(
    torch: Any, collector: Collector, program: str, most_events: int
) -> None:
    work = PROGRAMS.get(program, lambda torch: attend(torch, "FLASH_ATTENTION"))(torch)
    work()  # the first gradients are stored, later ones are added to them
    prof = recorded(work)
    told = prof.key_averages()
    collector.open(sources=frozenset({"ranges", "ops", WORK}))
    collector.start()
    collector.step_begin(0)
    work()
    collector.step_end()
    recording = collector.stop(most_events=most_events)
    assert {"work", "flops"} <= set(recording.sources)
    assert recording.is_summed is bool(most_events)
    groups = {group.name: group for group in recording.groups() if group.name != STEP_NAME}
    assert {name: group.flops for name, group in groups.items()} == {row.key: row.flops for row in told}
    once = flops_once(prof)
    assert {name: group.steps["flops"] for name, group in groups.items()} == {
        row.key: (once[row.key],) for row in told
    }
    whole = told.total_average().counted_flops
    assert sum(group.counted_flops for group in recording.groups()) == whole > 0


def of_two(torch: Any) -> Callable[[], object]:
    from torch.testing._internal.two_tensor import TwoTensor

    pair = TwoTensor(torch.ones(6, 8), torch.ones(6, 8))
    return lambda: pair @ torch.ones(8, 5)


@pytest.mark.parametrize(
    ("program", "flops"),
    [
        (lambda t: lambda: t.vmap(lambda x: x @ t.ones(8, 5))(t.ones(4, 3, 8)), 2 * 4 * 3 * 8 * 5),
        (of_two, 2 * 2 * 6 * 8 * 5),
    ],
    ids=["vmap", "subclass"],
)
def test_ops_inside_have_the_flops_of_many(
    torch: Any, collector: Collector, program: Callable[[Any], Callable[[], object]], flops: int
) -> None:
    """The outer op sees one of the elements, or of the tensors; the ops inside have them all."""
    work = program(torch)
    collector.open(sources=frozenset({"ranges", "ops", WORK}))
    collector.start()
    collector.step_begin(0)
    work()
    collector.step_end()
    recording = collector.stop()
    assert sum(group.counted_flops for group in recording.groups()) == flops
    assert recorded(work).key_averages().total_average().counted_flops == flops


def test_fused_attention_costs_its_two_products(torch: Any) -> None:
    """Torch's counter has no formula for the CPU's kernel; the forward is the same two products."""
    rows = {row.key: row.flops for row in recorded(attend(torch, "FLASH_ATTENTION")).key_averages()}
    forward = 2 * 2 * 4 * 8 * 12 * (16 + 16)
    assert rows["aten::scaled_dot_product_attention"] == forward
    assert rows["aten::_scaled_dot_product_flash_attention_for_cpu"] == forward
    assert rows["aten::_scaled_dot_product_flash_attention_for_cpu_backward"] == forward * 5 // 2


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("addmm", [(2, 4), (2, 3), (3, 4)]),
        ("baddbmm", [(5, 2, 4), (5, 2, 3), (5, 3, 4)]),
        ("addbmm", [(2, 4), (5, 2, 3), (5, 3, 4)]),
        ("addmv", [(2,), (2, 3), (3,)]),
    ],
)
def test_in_place_products_cost_as_much(torch: Any, name: str, sizes: list[tuple[int, ...]]) -> None:
    tensors = [torch.ones(size) for size in sizes]

    def work() -> None:
        for form in (name, f"{name}_"):
            getattr(torch.Tensor, form)(*tensors)

    rows = {row.key: row.flops for row in recorded(work).key_averages()}
    assert rows[f"aten::{name}_"] == rows[f"aten::{name}"] != 0


def test_recurrent_layers_cost_their_products(torch: Any) -> None:
    """Of doubles, torch runs the products as ops."""

    def counted(dtype: Any) -> int:
        layer = torch.nn.LSTM(8, 6, num_layers=2, bidirectional=True, dtype=dtype)
        x, *state = (
            torch.ones(size, dtype=dtype, requires_grad=True) for size in [(3, 2, 8), (4, 2, 6), (4, 2, 6)]
        )
        rows = recorded(lambda: layer(x, tuple(state))[0].sum().backward()).key_averages()
        return sum(row.counted_flops for row in rows if row.key not in ELEMENTWISE)

    assert counted(torch.float32) == counted(torch.float64) > 0


def test_grouped_convolutions_cost_their_share(torch: Any) -> None:
    """For the weight's gradient, torch's counter takes all channels; each group only uses its own."""
    whole, halves = (
        recorded(convolve(torch, 2, groups=groups)).key_averages().total_average().counted_flops
        for groups in (1, 2)
    )
    assert halves * 2 == whole > 0


def test_outer_range_sums_inner_flops(torch: Any) -> None:
    ones = torch.ones(8, 8)

    def work() -> None:
        with record_function("block"):
            ones @ ones
            torch.relu(ones)
        ones @ ones

    prof = recorded(work)
    rows = {row.key: row.flops for row in prof.key_averages()}
    assert rows == {
        "block": 1024,
        "aten::matmul": 2048,
        "aten::mm": 2048,
        "aten::relu": 0,
        "aten::clamp_min": 0,
        **{key: 0 for key in rows if key.startswith("aten::resolve")},
    }
    assert prof.key_averages().total_average().flops == 2048
    block = prof.events()[0]
    assert (block.name, block.flops) == ("block", 1024)
    assert "Total KFLOPs" in prof.key_averages().table()
    assert "Total KFLOPs" in prof.events().table()


def test_shapes_are_recorded_with_flops(torch: Any) -> None:
    prof = recorded(lambda: torch.ones(2, 3) * 2)
    assert prof.record_shapes
    assert "flops" in prof.cycles[0].recording.sources
    with profile(activities=[ProfilerActivity.CPU]) as plain:
        torch.ones(2, 3) * 2
    assert [event.flops for event in plain.events()] == [0] * len(plain.events())
    assert "FLOPs" not in plain.key_averages().table()


@pytest.mark.usefixtures("formulas")
def test_custom_formula_is_used(torch: Any) -> None:
    @register_flop_formula("aten::relu", "aten::neg")
    def one_each(inputs: Inputs) -> int:
        (shape,) = inputs.shapes
        return int(shape[0])

    rows = {row.key: row.flops for row in recorded(lambda: torch.ones(5).relu().neg()).key_averages()}
    assert (rows["aten::relu"], rows["aten::neg"]) == (5, 5)


@pytest.mark.usefixtures("formulas")
def test_a_formula_that_fails_is_named(torch: Any) -> None:
    @register_flop_formula("aten::relu")
    def broken(inputs: Inputs) -> int:
        raise KeyError(inputs.shapes[0][0])

    with pytest.warns(UserWarning, match=r"the FLOP formula of aten::relu failed .*\[\[5\]\]: KeyError: 5"):
        prof = recorded(lambda: torch.ones(5).relu())
    assert prof.key_averages().total_average().flops == 0


def test_formula_needs_op_names() -> None:
    with pytest.raises(UsageError, match="needs the names of ops"):
        register_flop_formula()
