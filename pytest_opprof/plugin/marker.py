"""The arguments of ``@pytest.mark.profile``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from numbers import Real
from types import MappingProxyType
from typing import Any, Final, TypeVar

import pytest

from pytest_opprof.capture.cuda import CUDA, CUDA_SOURCES
from pytest_opprof.capture.sources import EVERY_OP, parse_sampling, stack_sources
from pytest_opprof.errors import UsageError
from pytest_opprof.plugin.benchmarks import takes_benchmark
from pytest_opprof.profiler.schedule import ProfilerAction, action_of, schedule
from pytest_opprof.results.run import Schedule
from pytest_opprof.wording import did_you_mean

_NUMBERS: Final = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
# All arguments, explained in Markdown for the reference.
ARGUMENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "activities": "as torch.profiler's: `[ProfilerActivity.CPU, ProfilerActivity.CUDA]`",
        "schedule": "a function from a step's number to a `ProfilerAction`, in place of the numbers below",
        "wait": "steps of each cycle that run unobserved (default 0)",
        "warmup": "steps of each cycle that run before the recording begins (default 1)",
        "active": "steps of each cycle that are the measurement (default 3)",
        "repeat": "how many cycles (default 0, which for a test is one)",
        "skip_first": "steps that run unobserved before the first cycle (default 0)",
        "skip_first_wait": "1: the first cycle has no `wait` (default 0)",
        "record_shapes": "record the ops' input shapes and dtypes",
        "profile_memory": "record what torch's allocators take and give back",
        "with_flops": "also use your own FLOP formulas",
        "with_stack": (
            "`True`: record Python and C calls, so that each op has its Python stack; "
            '`"cpp"`: its C++ stack instead; `"all"`: both'
        ),
        "with_modules": "record the calls of torch modules, such as `nn.Module: Linear_0`",
        "sampling": "record this share of torch's ops instead of all, such as `0.01`",
        "limits": 'budgets for each active step that need no baseline: `[{"aten::item.count": 0}]`',
        "size": "the parameter that is the test's size, for a limit on `python.scaling`",
        "gates": 'how one metric is judged in this test: `{"aten::mul.count": "exact"}`',
        "group_by_input_shape": (
            "`opprof.key_averages()` has a row for each op and its shapes (needs `record_shapes`)"
        ),
        "trace": "write a Chrome trace of this test",
    }
)
_MAY_BE_NONE: Final = ("activities", "schedule", "limits", "gates")
_FLAGS = ("record_shapes", "profile_memory", "with_flops", "with_modules", "group_by_input_shape", "trace")
_Kind = TypeVar("_Kind")
_MOST_CALLS: Final = 10_000
BY_LINE: Final = pytest.StashKey[None]()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRequest:
    """What one marked test asks for."""

    schedule: Callable[[int], object]  # maps a step's number to its action
    numbers: Schedule | None  # the schedule's numbers; None for a function of the user's own
    calls: int  # how often a test is called, if it does not step itself
    cycles: int = 1  # how many cycles a test that steps itself must finish
    activities: tuple[str, ...] = ("cpu",)
    # The marker names them; else CUDA's are recorded if the session records them.
    names_activities: bool = False
    record_shapes: bool = False
    profile_memory: bool = False
    with_flops: bool = False
    stacks: frozenset[str] = frozenset()  # the recorded stacks, of "python" and "cpp"
    with_modules: bool = False
    sampling: float = EVERY_OP  # the share of torch's ops to record
    limits: Any = ()
    size: str = ""  # the parameter that is the test's size; empty without one
    gates: Mapping[str, str] = field(default_factory=dict)
    is_named: bool = True  # the marker is in the test's code; else a line of the options chose it
    group_by_input_shape: bool = False
    trace: bool = False
    missing: tuple[str, ...] = ()  # requests that this release does not support
    steps_itself: bool = False  # the test calls `step()` of the ``opprof`` fixture

    def sources_left(self, sources: frozenset[str]) -> frozenset[str]:
        """A session's sources, as the activities restrict and extend them."""
        left = sources if "cpu" in self.activities else sources & ({"ranges"} | CUDA_SOURCES)
        if "cuda" in self.activities:
            return left | {CUDA}
        return left - CUDA_SOURCES if self.names_activities else left

    def with_one_active_step(self) -> ProfileRequest:
        """The smallest request that shows a change; itself if that is all."""
        numbers = self.numbers
        if numbers is None or numbers.active == 1 or numbers.repeat > 1 or self.steps_itself or self.trace:
            return self
        return self._with(replace(numbers, active=1))

    def from_the_first_call(self) -> tuple[ProfileRequest, ...]:
        """Only the first call, as the active step; then the rest, for more calls."""
        numbers = self.numbers
        if numbers is None or not numbers.warmup:
            return (self,)
        return (self._with(Schedule(active=1)), self._with(replace(numbers, warmup=numbers.warmup - 1)))

    def _with(self, numbers: Schedule) -> ProfileRequest:
        return replace(self, schedule=_scheduled(numbers), numbers=numbers, calls=_calls(numbers))


def request_of(item: pytest.Item, *, suite: Mapping[str, Any] = MappingProxyType({})) -> ProfileRequest:
    """What a marked test's closest marker asks for; `suite` has what holds unless the marker sets it.

    Raises `UsageError` if an argument is unknown or invalid.
    """
    mark = _closest(item)
    where = f"@pytest.mark.profile of {item.nodeid}"
    given = {**_beside(mark, suite, parameters_of(item)), **mark.kwargs}.items()
    arguments = {name: value for name, value in given if value is not None or name not in _MAY_BE_NONE}
    if mark.args:
        if len(mark.args) > 1 or "activities" in arguments:
            raise UsageError(f"{where}: pass all arguments except `activities` by name")
        arguments["activities"] = mark.args[0]
    check_names(arguments, where=where)
    steps_itself = "opprof" in getattr(item, "fixturenames", ())
    # We call a benchmarked function, even if the test takes our fixture too.
    needs_calls = not steps_itself or bool(takes_benchmark(item))
    plan, numbers, calls = _plan(arguments, where=where, needs_calls=needs_calls)
    activities = _activities(arguments.get("activities"), where=where)
    gates = arguments.get("gates", {})
    if not isinstance(gates, Mapping):
        raise UsageError(f"{where}: gates must be a dict from a metric to a rule, not {gates!r}")
    return ProfileRequest(
        schedule=plan,
        numbers=numbers,
        calls=calls,
        cycles=max(numbers.repeat, 1) if numbers else 1,
        activities=activities,
        names_activities="activities" in arguments,
        stacks=stack_sources(arguments.get("with_stack", False), where=where),
        sampling=parse_sampling(arguments.get("sampling", EVERY_OP), where=where),
        limits=arguments.get("limits", ()),
        size=_checked("size", arguments.get("size", ""), str, "a string", where=where),
        is_named=BY_LINE not in item.stash,
        gates={str(path): str(rule) for path, rule in gates.items()},
        missing=tuple(f"activity {name}" for name in activities if name not in {"cpu", "cuda"}),
        steps_itself=steps_itself,
        **{
            name: _checked(name, arguments.get(name, False), bool, "True or False", where=where)
            for name in _FLAGS
        },
    )


def _closest(item: pytest.Item) -> pytest.Mark:
    """The closest marker, also where pytest lists a farther one first."""
    spec = getattr(item, "callspec", None)
    of_parameters = (mark for mark in (spec.marks if spec else ()) if mark.name == "profile")
    nearest, *others = item.iter_markers_with_node("profile")
    of_node = [mark for node, mark in (nearest, *others) if node is nearest[0]]
    # pytest lists a base class's marks before those of the class.
    return next(of_parameters, of_node[-1] if isinstance(nearest[0], pytest.Class) else of_node[0])


def check_names(arguments: Iterable[str], *, where: str) -> None:
    """Raise `UsageError` if the marker lacks one of these arguments."""
    for name in arguments:
        if name not in ARGUMENTS:
            hint = did_you_mean(name, ARGUMENTS, otherwise="there are")
            raise UsageError(f"{where}: unknown argument {name!r} ({hint})")


def parameters_of(item: pytest.Item) -> Mapping[str, Any]:
    """A test's parameters; empty if it is not parametrized."""
    spec = getattr(item, "callspec", None)
    return {} if spec is None else spec.params


def is_size(value: object) -> bool:
    """Whether a parameter's value may be a test's size: a number above 0."""
    return not isinstance(value, bool) and isinstance(value, Real) and float(value) > 0


def _beside(mark: pytest.Mark, suite: Mapping[str, Any], parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The suite's arguments that suit a test and do not contradict its marker's function or activities."""
    said = {*mark.kwargs, *(["activities"] if mark.args else [])}
    if mark.kwargs.get("schedule") is not None:
        said |= {*_NUMBERS}
    size = suite.get("size")
    if isinstance(size, str) and not is_size(parameters.get(size)):
        said.add("size")  # the suite has tests of other shapes too
    return {name: value for name, value in suite.items() if name not in said}


def refusal_of(item: pytest.Item) -> str:
    """Why a marked test cannot be profiled; "" if it can."""
    if not isinstance(item, pytest.Function):
        return "only test functions and methods can be profiled, and this is neither"
    if hasattr(item.obj, "hypothesis"):
        return (
            "a hypothesis test draws new examples each time, so its number of ops varies; profile a "
            "plain test with one of its examples"
        )
    return ""


def _checked(name: str, value: Any, kind: type[_Kind], what: str, *, where: str) -> _Kind:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UsageError(f"{where}: {name} must be {what}, not {value!r}")
    return value


def _activities(given: Any, *, where: str) -> tuple[str, ...]:
    """Lower-case names, from our enum's members, torch's, or strings."""
    if given is None:
        return ("cpu",)
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        given = (given,)
    names = tuple(dict.fromkeys(str(getattr(activity, "name", activity)).lower() for activity in given))
    if not names:
        raise UsageError(f"{where}: activities is empty; leave it out for the CPU's")
    known = {"cpu", "cuda", "xpu", "mtia", "hpu", "privateuse1"}
    for name in names:
        if name not in known:
            raise UsageError(f"{where}: unknown activity {name!r}; there are {', '.join(sorted(known))}")
    return names


def _plan(
    arguments: Mapping[str, Any], *, where: str, needs_calls: bool
) -> tuple[Callable[[int], object], Schedule | None, int]:
    own = arguments.get("schedule")
    if own is not None:
        given = [name for name in _NUMBERS if name in arguments]
        if given:
            raise UsageError(f"{where}: `schedule` and `{given[0]}` cannot both be given")
        if not callable(own):
            raise UsageError(f"{where}: `schedule` is a function from a step's number to a ProfilerAction")
        return own, None, _calls_of(own, where=where) if needs_calls else 0
    numbers = {"wait": 0, "warmup": 1, "active": 3}
    numbers |= {name: arguments[name] for name in _NUMBERS if name in arguments}
    for name, value in numbers.items():
        _checked(name, value, int, "a whole number", where=where)
    kept = Schedule(**numbers)
    try:
        plan = _scheduled(kept)
    except AssertionError as error:
        raise UsageError(f"{where}: {error}") from None
    return plan, kept, _calls(kept)


def _scheduled(numbers: Schedule) -> Callable[[int], object]:
    with warnings.catch_warnings():  # a marker says warmup=0 on purpose
        warnings.simplefilter("ignore")
        return schedule(**asdict(numbers))


def _calls(numbers: Schedule) -> int:
    """Calls until the last cycle is done."""
    cycle = numbers.wait + numbers.warmup + numbers.active
    first = numbers.wait if numbers.skip_first_wait else 0
    return numbers.skip_first + cycle * max(numbers.repeat, 1) - first


def _calls_of(own: Callable[[int], object], *, where: str) -> int:
    """Calls until the first cycle of a user's own schedule is done."""
    for step in range(_MOST_CALLS):
        try:
            action = action_of(own(step), step=step)
        except ValueError as error:
            raise UsageError(f"{where}: {error}") from None
        if action is ProfilerAction.RECORD_AND_SAVE:
            return step + 1
    raise UsageError(f"{where}: its schedule returns no RECORD_AND_SAVE in {_MOST_CALLS} steps")
