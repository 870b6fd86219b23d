"""Anti-patterns are reported for real code that has them, and not for similar code."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.documents.strategies import simple_run

from pytest_opprof.capture.call_sites import SITES
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.torch_compile import CompileWatch
from pytest_opprof.capture.torch_ops import WORK
from pytest_opprof.compare.sessions import compare_test
from pytest_opprof.report.advice import RULES
from pytest_opprof.report.blocks import advice_on, blocks_of
from pytest_opprof.results.build import with_measurement
from pytest_opprof.results.recorded import cycle_of
from pytest_opprof.results.run import TestResult

torch = pytest.importorskip("torch")

X = torch.ones(8, 8)
ROWS = torch.ones(32, 8)


def item_in_loop() -> object:
    return sum(row.sum().item() for row in ROWS)


def item_once() -> float:
    return float(ROWS.sum())


def truth_of_a_tensor() -> object:
    return X if (X > 0).all() else -X


def where() -> object:
    return torch.where((X > 0).all(), X, -X)


def by_numpy() -> object:
    return torch.from_numpy(X.cpu().numpy().clip(0, 1)).to(torch.float64).sum()


def on_device() -> object:
    return X.sum()


def cloned() -> object:
    return torch.relu(X.clone())


def contiguous() -> object:
    return X.t().contiguous().sum()


def transposed() -> object:
    return X.t().sum()


def relu_twice() -> object:
    return torch.relu(torch.relu(X))


def relu() -> object:
    return torch.relu(X)


def row_by_row() -> object:
    return torch.stack([torch.mv(X, row) for row in ROWS])


def batched() -> object:
    return ROWS @ X


def added() -> object:
    total = torch.zeros(8, 8)
    for _ in range(3):
        total = total + X
    return total


def added_in_place() -> object:
    total = torch.zeros(8, 8)
    for _ in range(3):
        total += X
    return total


def trained(around: Callable[..., Any]) -> None:
    """A residual whose gradients autograd adds in place if nothing else holds them."""
    hidden = torch.ones(8, 8, requires_grad=True) * 2
    inner = around(hidden)
    (hidden + inner @ X + inner @ X + inner @ X).sum().backward()


def residual() -> None:
    trained(lambda hidden: hidden)


def residual_of_a_clone() -> None:
    trained(torch.clone)


def hooked(seen: Callable[[Any], Any]) -> None:
    """A hook that only looks at a gradient."""
    leaf = torch.ones(8, requires_grad=True)
    leaf.register_hook(lambda gradient: seen(gradient) and None)
    leaf.sum().backward()


def hooked_plainly() -> None:
    hooked(lambda gradient: [gradient])


def hooked_with_a_copy() -> None:
    hooked(lambda gradient: [gradient.clone()])


class Averages(torch.optim.Optimizer):  # type: ignore[name-defined, misc]  # torch is Any here
    """An optimizer of a user's own."""

    def __init__(self, average: Callable[[Any], Any]) -> None:
        super().__init__([torch.nn.Parameter(torch.ones(8))], {})
        self.average = average

    def step(self) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                self.average(parameter.detach())


def averaged_in_place() -> None:
    Averages(lambda average: average.mul_(0.9)).step()


def averaged() -> None:
    Averages(lambda average: average.mul(0.9)).step()


def back_and_forth() -> object:
    return X.double().relu().float()


IMAGE = torch.ones(1, 4, 8, 8)


def relu_of_an_image() -> object:
    return torch.relu(IMAGE)


def channels_last() -> object:
    return torch.relu(IMAGE.to(memory_format=torch.channels_last))


def kept_on_the_host() -> object:
    return X.detach().to("cpu")


def cloned_on_the_host() -> object:
    return X.detach().clone().to("cpu")


def host_as_half() -> object:
    return X.detach().cpu().to(torch.float16)


KEPT = torch.arange(4)


def layers() -> object:
    return [X.relu() for _ in range(4)]


def gathering_layers() -> object:
    return [X.relu()[KEPT] for _ in range(4)]


def labels() -> object:
    return X.cpu()


def labels_beside_a_list() -> object:
    return X.cpu().to(X.dtype), torch.tensor([1.0, 2.0].copy()).relu()


def number() -> object:
    return X * 2.0


WEIGHT = torch.ones(8, 8, requires_grad=True)


def recorded() -> object:
    return torch.relu(X @ WEIGHT)


def not_recorded() -> object:
    with torch.no_grad():
        return torch.relu(X @ WEIGHT)


def recorded_twice() -> object:
    return torch.relu(torch.relu(X @ WEIGHT))


def mined_and_trained(around: Any) -> None:
    with around:
        (X @ WEIGHT).sort()
    (X @ WEIGHT).sum().backward()


def trained_beside_mined() -> None:
    mined_and_trained(torch.no_grad())


def trained_beside_recorded() -> None:
    mined_and_trained(torch.enable_grad())


COMPILED = torch.compile(lambda x: x * 2, backend="eager", dynamic=False)
SIZES = itertools.count(2)


def compiled_once() -> object:
    return COMPILED(X[:1])


def compiled_twice() -> object:
    return compiled_once(), compiled_once()


def compiled_again() -> object:
    return COMPILED(torch.ones(next(SIZES), 1))


def relu_beside_compiled() -> object:
    return compiled_once(), torch.relu(X)


def cloned_beside_compiled_again() -> object:
    return compiled_again(), torch.relu(X.clone())


SHOWN = [
    ("OP101", item_once, item_in_loop),
    ("OP101", where, truth_of_a_tensor),
    ("OP102", on_device, by_numpy),
    ("OP103", relu, cloned),
    ("OP103", transposed, contiguous),
    ("OP103", kept_on_the_host, cloned_on_the_host),
    ("OP103", hooked_plainly, hooked_with_a_copy),
    ("OP104", batched, row_by_row),
    ("OP105", not_recorded, recorded),
    ("OP105", trained_beside_mined, trained_beside_recorded),
    ("OP106", added_in_place, added),
    ("OP106", averaged_in_place, averaged),
    ("OP107", compiled_once, compiled_again),
    ("OP108", relu, back_and_forth),
    ("OP108", kept_on_the_host, host_as_half),
]
NOT_SHOWN = [
    (recorded, not_recorded),
    (recorded, recorded_twice),
    (relu, relu_twice),
    (number, added_in_place),
    (relu, batched),
    (compiled_once, compiled_twice),
    (relu_of_an_image, channels_last),
    (layers, gathering_layers),
    (labels, labels_beside_a_list),
]


def measured(work: Callable[[], object]) -> TestResult:
    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges", "ops", SITES, WORK}))
    work()
    collector.start(profile_memory=True)
    watch = CompileWatch()
    watch.begin()
    collector.step_begin(0)
    work()
    collector.step_end()
    recording = collector.stop()
    recording.compilations = (watch.end(),)
    cycle = cycle_of(recording)
    return with_measurement(
        TestResult(
            node_id="test_it.py::test_it", sources=("ranges", "ops", "memory", "compile", WORK), processes=2
        ),
        [cycle],
    )


def told(before: Callable[[], object], after: Callable[[], object]) -> Iterator[str]:
    base, head = measured(before), measured(after)
    found = compare_test(head, base, base=simple_run(base, name="main"), head=simple_run(head), policy=None)
    for block in blocks_of(found):
        if sentences := advice_on(block, found):
            yield sentences[-len("OP101)") : -1]


@pytest.mark.parametrize(("code", "before", "after"), SHOWN, ids=lambda one: getattr(one, "__name__", one))
def test_pattern_is_reported(code: str, before: Callable[[], object], after: Callable[[], object]) -> None:
    assert code in set(told(before, after))


@pytest.mark.parametrize(("before", "after"), NOT_SHOWN, ids=lambda one: getattr(one, "__name__", one))
def test_similar_code_is_not_reported(before: Callable[[], object], after: Callable[[], object]) -> None:
    assert list(told(before, after)) == []


def test_only_the_line_that_compiles_is_told_so() -> None:
    assert sorted(told(relu_beside_compiled, cloned_beside_compiled_again)) == ["OP103", "OP107"]


def test_autograds_own_work_is_not_reported() -> None:
    assert set(told(residual, residual_of_a_clone)) == {"OP103"}


def test_each_rule_has_a_number_and_a_section_of_its_own(repository: object) -> None:
    page = (repository / "docs" / "rules.md").read_text(encoding="utf-8")  # type: ignore[operator]  # a path
    numbers = [rule.code for rule in RULES]
    assert len(set(numbers)) == len(numbers)
    for rule in RULES:
        assert f"\n## {rule.code}\n\n**{rule.title}**" in page
