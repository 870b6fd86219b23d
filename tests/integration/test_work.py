"""The bytes of torch ops' inputs, and the nodes that they add to autograd's graph."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.kineto.torch_releases import skip_unless_overloads
from support.programs.ops_recording import noting

from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.op_groups import OpGroup
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.torch_ops import WORK

torch = pytest.importorskip("torch")

FLOAT = 4  # bytes


@pytest.fixture
def collector() -> Iterator[Collector]:
    with noting(WORK) as collector:
        yield collector


def recorded(collector: Collector, work: Callable[[], object], *, shapes: bool = False) -> Recording:
    collector.start(record_shapes=shapes)
    collector.step_begin(0)
    work()
    collector.step_end()
    return collector.stop()


def rows(recording: Recording) -> dict[str, OpGroup]:
    return {group.name: group for group in recording.groups()}


def whole(recording: Recording, column: str) -> int:
    return sum(group.steps[f"counted_{column}"][0] for group in recording.groups())


@pytest.mark.parametrize("shapes", [False, True], ids=["plain", "with-shapes"])
def test_op_has_its_inputs_bytes(collector: Collector, shapes: bool) -> None:
    x, weight = torch.randn(32, 64), torch.nn.Linear(64, 16)
    found = recorded(collector, lambda: weight(x), shapes=shapes)
    given = FLOAT * (32 * 64 + 64 * 16 + 16)
    assert rows(found)["aten::linear"].steps["bytes"] == (given,)
    assert rows(found)["aten::t"].steps["bytes"] == (0,)  # a view
    assert whole(found, "bytes") >= given
    assert (found.inputs(0) is None) is not shapes


@pytest.mark.parametrize(
    ("tensor", "nbytes"),
    [
        pytest.param(torch.ones(8, 8), FLOAT * 64, id="dense"),
        pytest.param(torch.ones(8, 8, dtype=torch.float64), 8 * 64, id="double"),
        pytest.param(torch.ones(8, 8).t(), FLOAT * 64, id="strided"),
        pytest.param(torch.ones(8, 1).expand(8, 8), FLOAT * 8, id="broadcast"),
        pytest.param(torch.ones(0, 8), 0, id="empty"),
        pytest.param(torch.tensor(1.0), FLOAT, id="scalar"),
    ],
)
def test_bytes_match_the_memory_in_use(collector: Collector, tensor: Any, nbytes: int) -> None:
    assert rows(recorded(collector, tensor.exp))["aten::exp"].steps["bytes"][0] == nbytes


def test_tensors_in_a_list_count(collector: Collector) -> None:
    x = torch.ones(10)
    assert rows(recorded(collector, lambda: torch.cat([x, x, x])))["aten::cat"].steps["bytes"] == (120,)


@pytest.mark.parametrize(
    ("layout", "nbytes"),
    [(torch.sparse_coo, 100 * 2 * 8), (torch.sparse_csr, (100 + 1 + 100) * 8)],
    ids=["coo", "csr"],
)
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_sparse_tensors_have_the_bytes_of_their_values(
    collector: Collector, layout: Any, nbytes: int
) -> None:
    sparse = torch.eye(100).to_sparse(layout=layout)
    assert rows(recorded(collector, sparse._nnz))["aten::_nnz"].steps["bytes"] == (nbytes + 100 * FLOAT,)
    product = rows(recorded(collector, lambda: sparse @ torch.ones(100, 4)))["aten::matmul"]
    assert product.flops == 0  # its sizes do not tell


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("mm", [(8, 4), (4, 2)]),
        ("addmm", [(8, 2), (8, 4), (4, 2)]),
        ("mul", [(5,), (5,)]),
        ("frexp", [(9,)]),  # which has two
    ],
)
def test_out_tensors_are_not_read(collector: Collector, name: str, sizes: list[Any]) -> None:
    skip_unless_overloads(torch)
    op, given = getattr(torch, name), [torch.ones(size) for size in sizes]
    out = op(*given)
    group = rows(recorded(collector, lambda: op(*given, out=out)))[f"aten::{name}"]
    assert group.steps["bytes"] == (FLOAT * sum(x.numel() for x in given),)


def test_nodes_match_the_autograd_graph(collector: Collector) -> None:
    layer, x = torch.nn.Linear(4, 4), torch.ones(2, 4)

    def forward() -> Any:
        return layer(x).relu().sum()

    def graph(node: object) -> int:
        """The graph's nodes except those that store a gradient."""
        seen, waiting = set(), [node]
        while waiting:
            one = waiting.pop()
            if one is not None and one not in seen and type(one).__name__ != "AccumulateGrad":
                seen.add(one)
                waiting += [after for after, _ in one.next_functions]  # type: ignore[attr-defined]
        return len(seen)

    found = recorded(collector, forward)
    assert whole(found, "nodes") == graph(forward().grad_fn)
    assert rows(found)["aten::relu"].steps["nodes"] == (1,)


def test_without_gradients_there_are_no_nodes(collector: Collector) -> None:
    layer, x = torch.nn.Linear(4, 4), torch.ones(2, 4)

    @torch.no_grad()  # type: ignore[untyped-decorator]  # torch is imported or skipped
    def forward() -> Any:
        return layer(x).relu().sum()

    assert whole(recorded(collector, forward), "nodes") == 0


def test_custom_autograd_function_is_a_node(collector: Collector) -> None:
    class Twice(torch.autograd.Function):  # type: ignore[name-defined,misc]  # the same
        @staticmethod
        def forward(_: object, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(_: object, gradient: Any) -> Any:
            return gradient * 2

    x = torch.ones(2, requires_grad=True)
    found = recorded(collector, lambda: Twice.apply(x))
    assert rows(found)["Twice"].steps["nodes"] == (1,)
    assert whole(found, "nodes") == 1


def test_a_backward_pass_makes_no_nodes(collector: Collector) -> None:
    layer, x = torch.nn.Linear(4, 4), torch.ones(2, 4)
    alone = whole(recorded(collector, lambda: layer(x).sum()), "nodes")
    assert whole(recorded(collector, lambda: layer(x).sum().backward()), "nodes") == alone


def test_summed_recordings_have_the_same_work(collector: Collector) -> None:
    layer, x = torch.nn.Linear(4, 4), torch.ones(2, 4)

    def step() -> None:
        for _ in range(20):
            layer(x).relu().sum().backward()

    step()  # the first gradients are stored, later ones are added to them
    collector.start()
    collector.step_begin(0)
    step()
    collector.step_end()
    summed = collector.stop(most_events=50)
    assert summed.is_summed
    kept = rows(recorded(collector, step))
    for name, group in rows(summed).items():
        for column in ("bytes", "counted_bytes", "nodes", "counted_nodes"):
            assert group.steps[column] == kept[name].steps[column], (name, column)
