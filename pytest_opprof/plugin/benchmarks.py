"""pytest-benchmark's fixture in a marked test: what it times is handed on when it has been timed.

The fixture has no hook around a call, so two methods of the object are replaced for a while: the ones that
its `__call__` and `pedantic` do their work in. They are private names, so they are looked for, and where
they are not there a test says itself what to profile, by ``opprof.benchmark``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pytest

    from pytest_opprof.results.run import TestResult

# The fixtures of pytest-benchmark (or what CodSpeed puts in its place) and of CodSpeed alone.
FIXTURES: Final = ("benchmark", "codspeed_benchmark")
SUMMARY_SCHEMA: Final = 1
_METHODS: Final = ("_raw", "_raw_pedantic")
_KEY: Final = "opprof"

Arguments = tuple[tuple[Any, ...], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmarked:
    """What a test benchmarks, to be called once more for each step.

    Attributes:
        setup: Of the pedantic mode: called before each call; what it returns, if anything, is given to
            `function` in the place of `args` and `kwargs`.
        teardown: Of the pedantic mode: called after each call, with the same arguments.
    """

    function: Callable[..., object]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    setup: Callable[[], Any] | None = None
    teardown: Callable[..., object] | None = None

    def prepare(self) -> Arguments:
        """Make ready for one call; what it is to be given."""
        made = self.setup() if self.setup is not None else None
        return made or (self.args, self.kwargs)

    def clean(self, arguments: Arguments) -> None:
        """Tidy up after one call."""
        args, kwargs = arguments
        if self.teardown is not None:
            self.teardown(*args, **kwargs)


def benchmark_of(item: pytest.Item) -> Any | None:
    """The fixture by which a test benchmarks; None in a test without one.

    It is known by its attributes: CodSpeed's says that it is of pytest-benchmark's class, and a fixture of
    the user's own may have the same name.
    """
    request: Any = getattr(item, "_request", None)
    for name in takes_benchmark(item) if request is not None else ():
        fixture = request.getfixturevalue(name)
        if callable(fixture) and hasattr(fixture, "pedantic") and hasattr(fixture, "extra_info"):
            return fixture
    return None


def takes_benchmark(item: pytest.Item) -> list[str]:
    """The fixtures of a test that may be there to benchmark, by their names."""
    return [name for name in FIXTURES if name in getattr(item, "fixturenames", ())]


def can_be_followed(fixture: Any) -> bool:
    """Whether a fixture shows what it times. CodSpeed's does not, and is left alone."""
    return hasattr(fixture, "__dict__") and all(callable(getattr(fixture, name, None)) for name in _METHODS)


@contextlib.contextmanager
def followed(fixture: Any, then: Callable[[Benchmarked], None]) -> Iterator[None]:
    """For a while, have `then` called with what `fixture` has just timed, as it would be without us."""
    raw, raw_pedantic = (getattr(fixture, name) for name in _METHODS)

    def timed(function: Callable[..., object], /, *args: Any, **kwargs: Any) -> object:
        __tracebackhide__ = True
        result = raw(function, *args, **kwargs)
        then(Benchmarked(function=function, args=args, kwargs=kwargs))
        return result

    def timed_pedantic(
        target: Callable[..., object],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[..., object] | None = None,
        **how_often: Any,
    ) -> object:
        __tracebackhide__ = True
        result = raw_pedantic(target, args=args, kwargs=kwargs, setup=setup, teardown=teardown, **how_often)
        then(
            Benchmarked(
                function=target, args=tuple(args), kwargs=kwargs or {}, setup=setup, teardown=teardown
            )
        )
        return result

    replaced = dict(zip(_METHODS, (timed, timed_pedantic), strict=True))
    vars(fixture).update(replaced)
    try:
        yield
    finally:
        for name in replaced:
            vars(fixture).pop(name, None)


def leave_summary(fixture: Any, test: TestResult, *, run_id: str) -> None:
    """Put what was measured among the benchmark's own numbers, in few words: pytest-benchmark stores them."""
    if isinstance(fixture.extra_info, dict):
        fixture.extra_info[_KEY] = {
            "schema": SUMMARY_SCHEMA,
            "run_id": run_id,
            "steps": test.steps,
            "totals": {name: samples.summarized().to_document() for name, samples in test.totals.items()},
        }


def is_measured_by_codspeed(config: pytest.Config) -> bool:
    """Whether CodSpeed measures this session: it counts what a process does, and we would be counted too."""
    return bool(getattr(config.pluginmanager.get_plugin("codspeed_plugin"), "is_codspeed_enabled", False))
