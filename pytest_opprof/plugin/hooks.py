"""What pytest calls. A session without a marked test loads this module and `options`, no more of ours."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_opprof.plugin.options import Options, add_options, read_options

if TYPE_CHECKING:
    from pytest_opprof.plugin.fixtures import Opprof
    from pytest_opprof.plugin.session import OpprofSession

_MARKER: Final = (
    "profile(activities=None, *, schedule=None, wait=0, warmup=1, active=3, repeat=0, skip_first=0, "
    "record_shapes=False, limits=(), gates=None, trace=False, ...): measure this test op by op; "
    "arguments as torch.profiler.profile's and schedule's"
)

OPTIONS: Final = pytest.StashKey[Options]()
SESSION: Final[pytest.StashKey[OpprofSession]] = pytest.StashKey()
ARMING: Final = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and their ini keys."""
    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Name the ITT collector before a conftest imports torch, where ITT is wanted or nothing else works."""
    asked = _asked_sources(early_config, args)
    if "itt" in asked or "ops-itt" in asked or not _has_compiler():
        from pytest_opprof.capture.injection import arm_itt  # noqa: PLC0415  # loaded where it is needed

        problem = arm_itt()
        if problem:
            early_config.stash[ARMING] = problem


def _asked_sources(config: pytest.Config, args: list[str]) -> list[str]:
    """The sources asked for, read before pytest's own parser has run over all plugins' options."""
    prefix = "--opprof-capture"
    for i, arg in enumerate(args):
        if arg.startswith(f"{prefix}="):
            return arg.partition("=")[2].split(",")
        if arg == prefix and i + 1 < len(args):
            return args[i + 1].split(",")
    return str(config.getini("opprof_capture") or "").split(",")


def _has_compiler() -> bool:
    return bool(os.environ.get("CXX")) or any(map(shutil.which, ("c++", "g++", "clang++")))


def pytest_configure(config: pytest.Config) -> None:
    """Read the options; where tests run in workers, join what they find."""
    config.addinivalue_line("markers", _MARKER)
    config.stash[OPTIONS] = read_options(config)
    if config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput"):
        from pytest_opprof.plugin.workers import ControllerHooks  # noqa: PLC0415

        config.pluginmanager.register(ControllerHooks(), "opprof-controller")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, object, object]:
    """Find the marked tests before others select among them, and make a session of ours if there are any."""
    options = config.stash[OPTIONS]
    marked = [item for item in items if item.get_closest_marker("profile")]
    if options.mode != "off" and (marked or _asks_for_something(options)):
        from pytest_opprof.plugin.session import open_session  # noqa: PLC0415

        open_session(config, marked)
    if options.mode == "only":
        chosen = set(map(id, marked))
        others = [item for item in items if id(item) not in chosen]
        if others:
            config.hook.pytest_deselected(items=others)
            items[:] = marked
    return (yield)


def _asks_for_something(options: Options) -> bool:
    return bool(options.save or options.baseline or options.json)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Print the header: only now is it known whether there is anything to say."""
    session = config.stash.get(SESSION, None)
    return session.header() if session else []


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Measure a marked test."""
    session = item.config.stash.get(SESSION, None)
    stepping = session.stepping_of(item) if session else None
    if stepping is None:
        return (yield)
    with stepping.around(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Judge what was measured: a failed gate is a failed test."""
    report = yield
    session = item.config.stash.get(SESSION, None)
    if session and (call.when == "call" or (call.when == "setup" and not report.passed)):
        session.judge(item, report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """After the tests, and before reports that read the exit status."""
    ours = session.config.stash.get(SESSION, None)
    if ours:
        ours.finish(session)
    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what came of all marked tests."""
    session = config.stash.get(SESSION, None)
    if session:
        session.summarize(terminalreporter)


@pytest.fixture
def opprof(request: pytest.FixtureRequest) -> Opprof:
    """Step through a profiled test yourself, and look at what was recorded.

    `step()` ends a step; `record_function(name)` names a range; `counts` and `key_averages()` are over the
    finished active steps. In a test without ``@pytest.mark.profile``, with ``--opprof=off`` or where capture
    failed, steps do nothing and there is nothing to see.
    """
    from pytest_opprof.plugin.fixtures import fixture_for  # noqa: PLC0415

    return fixture_for(request.node)
