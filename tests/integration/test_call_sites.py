"""The line of the user's own code from which each op is called, recorded while it runs."""

import functools
import importlib.util
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest
from support.programs.ops_recording import noting, recorded

from pytest_opprof import record_function
from pytest_opprof.capture.call_sites import CALLERS, SITES
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.recording import Recording
from pytest_opprof.events.user_frames import callers_of_places, places_of_ops, places_of_sites

torch = pytest.importorskip("torch")

SOURCE = """\
import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        x = self.linear(x)
        x = torch.relu(x).clone()
        return x * 2


class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.mul(3)

    @staticmethod
    def backward(context, gradient):
        return gradient.exp()


class Inner(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.mul(3)

    @staticmethod
    def backward(context, gradient):
        x = torch.ones(2, requires_grad=True)
        with torch.enable_grad():
            y = x.log1p()
            y.square().sum().backward()
        return x.grad.rsqrt()


class Chained(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        with torch.enable_grad():
            context.node = torch.ones(2, requires_grad=True).sin().grad_fn
        return x.mul(3)

    @staticmethod
    def backward(context, gradient):
        inner = context.node(gradient)
        return inner.erfc()


def hooked(x):
    y = x.mul(2)
    y.register_hook(lambda gradient: gradient.sign())
    y.sum().backward()


def again(x):
    return x.erf()


def checkpointed(x):
    torch.utils.checkpoint.checkpoint(again, x, use_reentrant=False).sum().backward()


def twice(x):
    x = x.sigmoid(); x = x.sigmoid()
    return x


def by_a_library(xs):
    return list(map(torch.neg, xs))


def grouped(x):
    with torch.profiler.record_function("grouped"):
        return x.tanh()


def generated(count):
    for _ in range(count):
        yield torch.ones(2).cos()


def trained(x):
    x.sum().backward()  # first
    (x * x).sum().backward()
    x.sum().backward()  # again


def trained_by_gradients(x, gradient):
    y, z = x.mul(2), x.add(1)
    y.backward(gradient)
    z.backward(gradient)


été = lambda x: x.ceil()
"""


def line_of(text: str) -> int:
    """The number of the only line that contains this text."""
    (number,) = (at for at, line in enumerate(SOURCE.splitlines(), start=1) if text in line)
    return number


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """A module of the user."""
    path = tmp_path_factory.mktemp("own") / "modèle.py"
    path.write_text(SOURCE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("modele", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def collector() -> Iterator[Collector]:
    with noting(SITES) as collector:
        yield collector


def lines(recording: Recording, op: str) -> Counter[str]:
    """How often the op was called, by function and line in the user's module."""
    places = places_of_sites(recording.called_from()).get(op, Counter())
    return Counter(
        {
            place.name.replace(place.name.partition(", ")[2].rpartition(":")[0], "modèle.py"): calls
            for place, calls in places.items()
        }
    )


def at(function: str, text: str) -> str:
    return f"{function}, modèle.py:{line_of(text)}"


def test_an_op_is_called_from_the_innermost_own_line(user: ModuleType, collector: Collector) -> None:
    block, x = user.Block(), torch.ones(2, 4)
    found = recorded(collector, lambda: block(x))
    assert lines(found, "aten::linear") == {at("Block.forward", "self.linear(x)"): 1}
    assert lines(found, "aten::addmm") == {at("Block.forward", "self.linear(x)"): 1}
    assert lines(found, "aten::clone") == {at("Block.forward", ".clone()"): 1}
    assert lines(found, "aten::mul") == {at("Block.forward", "x * 2"): 1}


def test_two_calls_on_a_line_share_a_call_site(user: ModuleType, collector: Collector) -> None:
    found = recorded(collector, lambda: user.twice(torch.ones(2)))
    assert lines(found, "aten::sigmoid") == {at("twice", "x = x.sigmoid(); x"): 2}


def test_library_calls_belong_to_the_calling_line(user: ModuleType, collector: Collector) -> None:
    reduce = functools.partial(functools.reduce, lambda a, b: a)
    found = recorded(collector, lambda: reduce(user.by_a_library([torch.ones(2)] * 3)))
    assert lines(found, "aten::neg") == {at("by_a_library", "map(torch.neg"): 3}


def test_a_range_has_its_own_line(user: ModuleType, collector: Collector) -> None:
    found = recorded(collector, lambda: user.grouped(torch.ones(2)))
    assert lines(found, "grouped") == {at("grouped", 'record_function("grouped")'): 1}
    assert lines(found, "aten::tanh") == {at("grouped", "x.tanh()"): 1}


def test_generators_and_names_beyond_ascii(user: ModuleType, collector: Collector) -> None:
    found = recorded(collector, lambda: [user.été(x) for x in user.generated(2)])
    assert lines(found, "aten::cos") == {at("generated", "yield"): 2}
    assert lines(found, "aten::ceil") == {at("<lambda>", "été ="): 2}


@pytest.mark.parametrize("most_events", [0, 5], ids=["rows", "sums"])
def test_a_backward_op_has_its_forwards_line(
    user: ModuleType, collector: Collector, most_events: int
) -> None:
    block, x = user.Block(), torch.ones(2, 4)

    def step() -> None:
        for _ in range(3):
            loss = block(x)
            loss.sum().backward()

    found = recorded(collector, step, most_events=most_events)
    assert found.is_summed == bool(most_events)
    assert lines(found, "CloneBackward0") == {at("Block.forward", ".clone()"): 3}
    assert lines(found, "autograd::engine::evaluate_function: MulBackward0") == {
        at("Block.forward", "x * 2"): 3
    }
    assert lines(found, "AddmmBackward0") == {at("Block.forward", "self.linear(x)"): 3}


def test_op_without_a_forward_has_the_engines_line(user: ModuleType, collector: Collector) -> None:
    x = torch.ones(2, requires_grad=True)
    found = recorded(collector, lambda: [user.trained(x) for _ in range(2)])
    assert lines(found, "torch::autograd::AccumulateGrad") == {
        at("trained", "backward()  # first"): 2,
        at("trained", "(x * x).sum().backward()"): 2,
        at("trained", "# again"): 2,
    }


def test_calls_of_the_engine_in_a_row_have_their_own_lines(user: ModuleType, collector: Collector) -> None:
    """Torch's frames of both calls are at the same addresses, and no op is between them."""
    x, gradient = torch.ones(2, requires_grad=True), torch.ones(2)
    found = recorded(collector, lambda: user.trained_by_gradients(x, gradient))
    assert lines(found, "torch::autograd::AccumulateGrad") == {
        at("trained_by_gradients", "y.backward(gradient)"): 1,
        at("trained_by_gradients", "z.backward(gradient)"): 1,
    }


def test_op_after_a_called_node_has_its_own_line(user: ModuleType, collector: Collector) -> None:
    x = torch.ones(2, requires_grad=True)
    found = recorded(collector, lambda: user.Chained.apply(x).sum().backward())
    assert lines(found, "aten::erfc") == {at("Chained.backward", "inner.erfc()"): 1}


@pytest.mark.parametrize("most_events", [0, 5], ids=["rows", "sums"])
def test_python_in_a_node_has_its_own_lines(user: ModuleType, collector: Collector, most_events: int) -> None:
    """A custom `backward`, a hook and a recomputed forward; the nodes keep their lines."""
    x = torch.ones(2, requires_grad=True)

    def step() -> None:
        for _ in range(3):
            user.Double.apply(x).sum().backward()
            user.hooked(x)
            user.checkpointed(x)

    found = recorded(collector, step, most_events=most_events)
    assert found.is_summed == bool(most_events)
    assert lines(found, "aten::exp") == {
        at("Double.backward", "gradient.exp()"): 3,
        at("again", "x.erf()"): 3,  # erf's own backward
    }
    assert lines(found, "aten::sign") == {at("hooked.<locals>.<lambda>", "gradient.sign()"): 3}
    assert lines(found, "aten::erf") == {at("again", "x.erf()"): 6}
    assert lines(found, "ErfBackward0") == {at("again", "x.erf()"): 3}
    (applied,) = places_of_sites(found.called_from())["DoubleBackward"]
    assert applied.text == "user.Double.apply(x).sum().backward()"


def test_nested_engine_has_the_line_that_runs_it(user: ModuleType, collector: Collector) -> None:
    x = torch.ones(2, requires_grad=True)
    found = recorded(collector, lambda: [user.Inner.apply(x).sum().backward() for _ in range(2)])
    assert lines(found, "aten::log1p") == {at("Inner.backward", "x.log1p()"): 2}
    assert lines(found, "Log1PBackward0") == {at("Inner.backward", "x.log1p()"): 2}
    assert (
        lines(found, "torch::autograd::AccumulateGrad")[at("Inner.backward", "y.square().sum().backward()")]
        == 2
    )
    assert lines(found, "aten::rsqrt") == {at("Inner.backward", "x.grad.rsqrt()"): 2}


@pytest.mark.parametrize("most_events", [0, 5], ids=["rows", "sums"])
def test_callers_are_noted_on_demand(user: ModuleType, collector: Collector, most_events: int) -> None:
    """Up to the test, through installed code, and through the engine to its caller."""
    x = torch.ones(2, 4, requires_grad=True)
    model = torch.nn.Sequential(user.Block(), user.Block())

    def step() -> None:
        for _ in range(2):
            model(x)
        user.checkpointed(user.Double.apply(x))

    step()  # from here on gradients accumulate
    by_default = recorded(collector, step, most_events=most_events)
    assert callers_of_places(by_default.called_from()) == {}
    collector.open(sources=frozenset({"ranges", "ops", SITES, CALLERS}))
    found = recorded(collector, step, most_events=most_events)
    assert places_of_sites(found.called_from()) == places_of_sites(by_default.called_from())
    callers = {
        place.text: {caller.text for caller in around}
        for place, around in callers_of_places(found.called_from()).items()
    }
    assert callers["x = torch.relu(x).clone()"] == {"model(x)"}
    assert callers["return gradient.exp()"] == {
        "torch.utils.checkpoint.checkpoint(again, x, use_reentrant=False).sum().backward()"
    }
    assert callers["return x.erf()"] == callers["return gradient.exp()"]
    (applied,) = callers["torch.utils.checkpoint.checkpoint(again, x, use_reentrant=False).sum().backward()"]
    assert applied == "user.checkpointed(user.Double.apply(x))"


def test_recursion_does_not_exhaust_the_site_numbers(user: ModuleType, collector: Collector) -> None:
    collector.open(sources=frozenset({"ranges", "ops", SITES, CALLERS}))

    def deep(x: object, depth: int) -> object:
        return deep(x, depth - 1) if depth else user.twice(x)

    found = recorded(collector, lambda: [deep(torch.ones(2), depth) for depth in range(200)])
    assert lines(found, "aten::sigmoid") == {at("twice", "x = x.sigmoid(); x"): 400}
    around = callers_of_places(found.called_from())
    assert {place.text for places in around.values() for place in places} >= {
        "return deep(x, depth - 1) if depth else user.twice(x)"
    }


def test_threads_have_lines_of_their_own(user: ModuleType, collector: Collector) -> None:
    barrier = threading.Barrier(2)

    def work(function: Callable[[object], object]) -> None:
        barrier.wait()
        for _ in range(200):
            function(torch.ones(2))

    with ThreadPoolExecutor(2) as pool:

        def both() -> None:
            for done in [pool.submit(work, user.twice), pool.submit(work, user.grouped)]:
                done.result()

        found = recorded(collector, both)
    assert set(lines(found, "aten::sigmoid")) <= {at("twice", "x = x.sigmoid(); x")}
    assert set(lines(found, "aten::tanh")) <= {at("grouped", "x.tanh()")}


def test_generated_code_has_the_line_that_runs_it(user: ModuleType, collector: Collector) -> None:
    """Code objects come and go, and one may get another's address."""

    def step() -> None:
        for number in range(50):
            code = compile("\n" * number + "x.ceil()", str(Path(user.__file__ or "")), "exec")
            exec(code, {"x": torch.ones(2)})  # noqa: S102  # as templates do
            exec("x.exp()", {"x": torch.ones(2)})  # noqa: S102

    found = recorded(collector, step)
    assert sum(lines(found, "aten::ceil").values()) == 50
    assert len(lines(found, "aten::ceil")) == 50
    (place,) = places_of_sites(found.called_from())["aten::exp"]
    assert place.text == 'exec("x.exp()", {"x": torch.ones(2)})  # noqa: S102'


def test_call_sites_agree_with_stacks(user: ModuleType, collector: Collector) -> None:
    """If calls are recorded, sites are not recorded as well, and the call sites are the same lines."""
    block, x = user.Block(), torch.ones(2, 4)
    noted = places_of_sites(recorded(collector, lambda: block(x)).called_from())
    collector.open(sources=frozenset({"ranges", "ops", "python", SITES}))
    by_stacks = recorded(collector, lambda: block(x))
    assert by_stacks.called_from() == []
    for op, places in places_of_ops(by_stacks).items():
        if op.startswith("aten::"):
            assert Counter({place.text: calls for place, calls in places.items()}) == {
                place.text: calls for place, calls in noted[op].items()
            }


def test_lines_of_module_calls_are_no_sites(user: ModuleType, collector: Collector) -> None:
    """Only libraries' code is around the op on the pool's thread, so it has no site."""
    collector.open(sources=frozenset({"ranges", "ops", "modules", SITES}))
    linear, block, x = torch.nn.Linear(4, 4), user.Block(), torch.ones(2, 4)
    with ThreadPoolExecutor(1) as pool:
        found = recorded(collector, lambda: (pool.submit(linear, x).result(), block(x)))
    assert "modules" in found.sources
    assert all(called.site.line for called in found.called_from())
    assert lines(found, "aten::linear") == {at("Block.forward", "self.linear(x)"): 1}


def test_nothing_is_noted_unless_asked_for(user: ModuleType, collector: Collector) -> None:
    collector.open(sources=frozenset({"ranges", "ops"}))
    assert recorded(collector, lambda: user.twice(torch.ones(2))).called_from() == []


def test_ranges_need_no_torch(collector: Collector) -> None:
    def step() -> None:
        with record_function("mine"):
            pass

    (place,) = places_of_sites(recorded(collector, step).called_from())["mine"]
    assert place.text == 'with record_function("mine"):'
    assert place.name.startswith("test_ranges_need_no_torch.<locals>.step, ")
    line = test_ranges_need_no_torch.__code__.co_firstlineno + 2
    assert place.name.rpartition(":")[2] == str(line)
