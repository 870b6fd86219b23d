"""pytest-benchmark: its fixture in a marked test, whose function is passed on when timed, and its files.

The fixture has no hook around a call, so two methods of the object are replaced temporarily: those in which
its `__call__` and `pedantic` do their work. They are private, so they are looked up; if they are missing, a
test says itself what to profile, by ``opprof.benchmark``.

The `machine_info` of its files is unchanged: pytest-benchmark warns of every stored file whose machine
differs in any field, so with a field of ours it would warn of all files stored without us.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_opprof.results.benchmark_run import details_of

if TYPE_CHECKING:
    from pytest_opprof.plugin.session import OpprofSession
    from pytest_opprof.results.run import TestResult

# The fixtures of pytest-benchmark (or CodSpeed's replacement) and of CodSpeed alone.
FIXTURES: Final = ("benchmark", "codspeed_benchmark")
SUMMARY_SCHEMA: Final = 1
_METHODS: Final = ("_raw", "_raw_pedantic")
_KEY: Final = "opprof"
_FOUND: Final = pytest.StashKey[dict[str, Any]]()
_STORES: Final = ("save", "autosave", "json")

Arguments = tuple[tuple[Any, ...], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmarked:
    """A benchmarked function, to be called once more for each step."""

    function: Callable[..., object]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    # In the pedantic mode, called before each call; its result, if any, replaces `args` and `kwargs`.
    setup: Callable[[], Any] | None = None
    # In the pedantic mode, called after each call, with the same arguments.
    teardown: Callable[..., object] | None = None

    def prepare(self) -> Arguments:
        """Set up one call; gives its arguments."""
        made = self.setup() if self.setup is not None else None
        return made or (self.args, self.kwargs)

    def clean(self, arguments: Arguments) -> None:
        """Tear down one call."""
        args, kwargs = arguments
        if self.teardown is not None:
            self.teardown(*args, **kwargs)


def benchmark_of(item: pytest.Item) -> Any | None:
    """The fixture by which a test benchmarks; None without one.

    Its attributes identify it: CodSpeed's claims pytest-benchmark's class, and a fixture of the user's own
    may have the same name.
    """
    request: Any = getattr(item, "_request", None)
    for name in takes_benchmark(item) if request is not None else ():
        fixture = request.getfixturevalue(name)
        if callable(fixture) and hasattr(fixture, "pedantic") and hasattr(fixture, "extra_info"):
            return fixture
    return None


def takes_benchmark(item: pytest.Item) -> list[str]:
    """The fixtures of a test that may benchmark, by their names."""
    return [name for name in FIXTURES if name in getattr(item, "fixturenames", ())]


def can_be_followed(fixture: Any) -> bool:
    """Whether a fixture shows what it times. CodSpeed's does not, and is left alone."""
    return hasattr(fixture, "__dict__") and all(callable(getattr(fixture, name, None)) for name in _METHODS)


@contextlib.contextmanager
def followed(fixture: Any, then: Callable[[Benchmarked], None]) -> Iterator[None]:
    """Inside, `then` is called with what `fixture` has just timed, undisturbed by us."""
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
    """Add a summary of the measurement to the benchmark's numbers, which pytest-benchmark stores."""
    if isinstance(fixture.extra_info, dict):
        fixture.extra_info[_KEY] = {
            "schema": SUMMARY_SCHEMA,
            "run_id": run_id,
            "steps": test.steps,
            "totals": {name: samples.summarized().to_document() for name, samples in test.totals.items()},
        }


def is_measured_by_codspeed(config: pytest.Config) -> bool:
    """Whether CodSpeed measures this session: it would count our work too."""
    return bool(getattr(config.pluginmanager.get_plugin("codspeed_plugin"), "is_codspeed_enabled", False))


def machine_info(config: pytest.Config, *, without: object) -> dict[str, Any]:
    """What pytest-benchmark knows of this machine; asked once, not of the plugin `without`, which asks."""
    if _FOUND not in config.stash:
        ask = config.pluginmanager.subset_hook_caller("pytest_benchmark_generate_machine_info", [without])
        config.stash[_FOUND] = ask(config=config)
    # pytest-benchmark's plugins add to the answer.
    return copy.deepcopy(config.stash[_FOUND])


def machine_details(config: pytest.Config) -> Mapping[str, str]:
    """The same for our document, if pytest-benchmark asks for it anyway."""
    theirs = getattr(config, "_benchmarksession", None)
    is_stored = bool(getattr(theirs, "benchmarks", None)) and any(
        getattr(theirs, name, None) for name in _STORES
    )
    if not is_stored and _FOUND not in config.stash:
        return {}
    return details_of(config.hook.pytest_benchmark_generate_machine_info(config=config))


def leave_environment(output_json: dict[str, Any], session: OpprofSession) -> None:
    """Add the run's id and its environment's fingerprint to pytest-benchmark's file."""
    run = session.run_of(())
    output_json[_KEY] = {"run_id": run.run_id, "fingerprint": dict(run.environment.fingerprint)}
