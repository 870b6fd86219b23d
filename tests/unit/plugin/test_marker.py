"""Markers, read from real items."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from pytest_opprof.errors import UsageError
from pytest_opprof.plugin.marker import is_size, request_of
from pytest_opprof.profiler.schedule import ProfilerAction
from pytest_opprof.results.run import Schedule

MakeItem = Callable[[str], pytest.Item]


def marked(arguments: str, *, takes: str = "") -> str:
    return f"@pytest.mark.profile({arguments})\ndef test_it({takes}): pass"


def test_a_bare_marker_warms_up_once_and_records_three_times(make_item: MakeItem) -> None:
    request = request_of(make_item(marked("")))
    assert request.numbers == Schedule(warmup=1, active=3)
    assert (request.calls, request.cycles, request.activities) == (4, 1, ("cpu",))
    assert [request.schedule(step) for step in range(5)] == [
        ProfilerAction.WARMUP,
        ProfilerAction.RECORD,
        ProfilerAction.RECORD,
        ProfilerAction.RECORD_AND_SAVE,
        ProfilerAction.WARMUP,
    ]


CLOSEST = """\
import pytest

@pytest.mark.profile(active=8)
@pytest.mark.profile(active=2)
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.profile(active=5))])
def test_stacked(n): pass

@pytest.mark.profile(active=8)
class TestBase:
    def test_it(self): pass

@pytest.mark.profile(active=3)
class TestDerived(TestBase):
    pass
"""


def test_the_closest_marker_wins(lone: pytest.Pytester) -> None:
    calls = {item.nodeid.partition("::")[2]: request_of(item).calls for item in lone.getitems(CLOSEST)}
    assert calls == {
        "test_stacked[1]": 1 + 2,
        "test_stacked[2]": 1 + 5,
        "TestBase::test_it": 1 + 8,
        "TestDerived::test_it": 1 + 3,
    }


@pytest.mark.parametrize(
    ("arguments", "calls", "cycles"),
    [
        ("active=1, warmup=0", 1, 1),
        ("wait=1, warmup=2, active=3, repeat=2", 12, 2),
        ("skip_first=5, repeat=1", 9, 1),
        ("wait=3, skip_first_wait=1, repeat=2", 11, 2),
        ("schedule=lambda step: A.RECORD_AND_SAVE", 1, 1),
        ("schedule=lambda step: A.NONE if step < 6 else A.RECORD_AND_SAVE", 7, 1),
    ],
    ids=["once", "cycles", "skipped first", "skipped first wait", "own", "own after some"],
)
def test_calls_are_counted_from_the_schedule(
    make_item: MakeItem, arguments: str, calls: int, cycles: int
) -> None:
    request = request_of(make_item(marked(arguments)))
    assert (request.calls, request.cycles, request.steps_itself) == (calls, cycles, False)


@pytest.mark.parametrize(
    ("arguments", "takes", "calls"),
    [
        ("", "", 2),
        ("active=3, repeat=1", "", 2),
        ("active=3, repeat=2", "", 8),
        ("active=1", "", 2),
        ("", "opprof", 4),
    ],
    ids=["bare", "one cycle", "two cycles", "one step", "steps itself"],
)
def test_one_active_step_is_enough_of_one_cycle(
    make_item: MakeItem, arguments: str, takes: str, calls: int
) -> None:
    request = request_of(make_item(marked(arguments, takes=takes)))
    one = request.with_one_active_step()
    assert one.calls == calls
    assert (one is request) == (arguments not in {"", "active=3, repeat=1"} or takes == "opprof")


def test_a_test_with_the_fixture_steps_itself(make_item: MakeItem) -> None:
    request = request_of(make_item(marked("schedule=lambda step: A.NONE", takes="opprof")))
    assert request.steps_itself
    assert request.calls == 0, "a schedule without an end is the test's own business"


def test_a_marker_that_skips_the_warm_up_does_not_warn(
    make_item: MakeItem, recwarn: pytest.WarningsRecorder
) -> None:
    request_of(make_item(marked("warmup=0, active=1")))
    assert [str(warning.message) for warning in recwarn if "warmup" in str(warning.message)] == []


@pytest.mark.parametrize(
    ("arguments", "activities", "missing"),
    [
        ("['CPU']", ("cpu",), ()),
        ("activities='cpu'", ("cpu",), ()),
        ("activities=(P.CPU, P.CUDA, 'cuda')", ("cpu", "cuda"), ()),
        ("activities=(P.CPU, P.XPU)", ("cpu", "xpu"), ("activity xpu",)),
        ("profile_memory=True, with_stack=True, with_flops=True, with_modules=True", ("cpu",), ()),
    ],
    ids=["positional", "one", "of an enum", "not captured", "all captured"],
)
def test_activities_are_read_as_torch_reads_them(
    make_item: MakeItem, arguments: str, activities: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    source = f"from pytest_opprof import ProfilerActivity as P\n{marked(arguments)}"
    request = request_of(make_item(source))
    assert (request.activities, request.missing) == (activities, missing)


@pytest.mark.parametrize(("arguments", "sampling"), [("sampling=0.25", 0.25), ("sampling=1", 1), ("", 1)])
def test_a_share_of_the_ops_can_be_asked_for(make_item: MakeItem, arguments: str, sampling: float) -> None:
    assert request_of(make_item(marked(arguments))).sampling == sampling


def test_a_share_that_cannot_be_drawn_is_refused(make_item: MakeItem) -> None:
    with pytest.raises(UsageError, match=r"\.py::test_it: sampling is 0; it is the share of torch's ops"):
        request_of(make_item(marked("sampling=0")))


@pytest.mark.parametrize(
    ("value", "is_one"),
    # NumPy's numbers are registered as `Real`, as a `Fraction` is.
    [(100, True), (0.5, True), (Fraction(100), True), (0, False), (-1, False), (True, False), ("9", False)],
)
def test_a_size_is_a_number_above_0_of_any_type(value: object, *, is_one: bool) -> None:
    assert is_size(value) is is_one


def test_none_means_the_default(make_item: MakeItem) -> None:
    request = request_of(make_item(marked("activities=None, schedule=None, limits=None, gates=None")))
    assert (request.activities, request.calls, request.limits, request.gates) == (("cpu",), 4, (), {})


def test_the_error_names_the_test_and_the_nearest_argument(make_item: MakeItem) -> None:
    with pytest.raises(
        UsageError, match=r"\.py::test_it: unknown argument 'actve' \(did you mean 'active'\?\)"
    ):
        request_of(make_item(marked("actve=2")))
