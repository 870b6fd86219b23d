"""O5: FLOPs against torch.profiler's, op by op, over random shapes and arguments."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_opprof import ProfilerActivity, profile
from pytest_opprof.events.kineto_results import _WITH_FLOPS

pytestmark = pytest.mark.usefixtures("torch")

Call = Callable[[Any], object]


size = st.integers(1, 6)


def multiply(n: int, k: int, m: int, batch: int) -> Call:
    def call(torch: Any) -> None:
        a, b = torch.ones(n, k), torch.ones(k, m)
        torch.mm(a, b)
        torch.addmm(torch.ones(m), a, b)
        torch.bmm(torch.ones(batch, n, k), torch.ones(batch, k, m))
        torch.baddbmm(torch.ones(1), torch.ones(batch, n, k), torch.ones(batch, k, m))
        torch.nn.functional.linear(a, b.t())
        torch.ones(batch, n, k) @ b

    return call


def by_elements(shape: list[int]) -> Call:
    def call(torch: Any) -> None:
        a = torch.ones(shape)
        torch.mul(a, 3)
        torch.add(a, a, alpha=2)
        torch.mul(a, torch.ones(1))
        torch.add(torch.ones(1), a)

    return call


@st.composite
def convolutions(draw: st.DrawFn) -> Call:
    groups = draw(st.integers(1, 3))
    width = draw(st.integers(1, 3))
    odd = st.sampled_from([1, 3])  # torch warns for an even size with padding "same"
    kernel = draw(st.tuples(odd, odd))
    dilation = draw(st.integers(1, 2) | st.tuples(st.integers(1, 2), st.integers(1, 2)))
    padding = draw(st.integers(0, 2) | st.tuples(st.integers(0, 2), st.integers(0, 2)) | st.just("same"))
    stride = 1 if padding == "same" else draw(st.integers(1, 3))
    image = draw(st.tuples(st.integers(5, 9), st.integers(5, 9)))
    batch = draw(st.integers(0, 3))

    def call(torch: Any) -> None:
        data = torch.ones(*([batch] if batch else []), groups * width, *image)
        weight = torch.ones(groups * 2, width, *kernel)
        torch.nn.functional.conv2d(
            data, weight, stride=stride, padding=padding, dilation=dilation, groups=groups
        )

    return call


calls = st.lists(
    st.builds(multiply, size, size, size, size)
    | st.builds(by_elements, st.lists(size, max_size=4))
    | convolutions(),
    min_size=4,
    max_size=12,
)


# A torch session takes half a second, and each example makes about forty calls.
@settings(max_examples=min(settings().max_examples, 200))
@given(calls=calls)
def test_flops_match_torchs(torch: Any, calls: list[Call]) -> None:
    theirs = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_flops=True)
    with theirs:
        for call in calls:
            call(torch)
    with profile(activities=[ProfilerActivity.CPU], with_flops=True) as ours:
        for call in calls:
            call(torch)
    kineto = sorted(theirs.profiler.kineto_results.events(), key=lambda event: event.correlation_id())
    told = [(event.name(), event.flops()) for event in kineto if event.name() in _WITH_FLOPS]
    events = ours.cycles[0].kineto_results.events()
    seen = [(event.name(), event.flops()) for event in events if event.name() in _WITH_FLOPS]
    assert seen == told


def test_averages_and_table_have_torchs_flops(torch: Any) -> None:
    def work() -> None:
        multiply(3, 4, 5, 2)(torch)
        torch.nn.functional.conv2d(torch.ones(1, 2, 5, 5), torch.ones(3, 2, 3, 3), stride=2, padding=1)

    theirs = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_flops=True)
    with theirs:
        work()
    with profile(activities=[ProfilerActivity.CPU], with_flops=True) as ours:
        work()
    told = {row.key: row.flops for row in theirs.key_averages()}
    assert {row.key: row.flops for row in ours.key_averages(compat="torch")} == told
    assert sum(told.values()) > 0
    # Unlike torch's, a row has the FLOPs of its callees, and the total counts nothing twice.
    rows = {row.key: row.flops for row in ours.key_averages()}
    assert {key: rows[key] for key in _WITH_FLOPS if key in rows} == {
        key: flops for key, flops in told.items() if key in _WITH_FLOPS
    }
    assert ours.key_averages().total_average().flops == sum(told.values())
    assert "Total FLOPs" in ours.key_averages().table()
