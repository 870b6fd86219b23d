"""What pytest calls. A session without a marked test loads only this, `options` and `stash`."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_opprof.plugin.option_table import add_options
from pytest_opprof.plugin.options import ALWAYS, read_options
from pytest_opprof.plugin.stash import ARMING, ASIDE, FAILED, OPTIONS, PARSER, SESSION, UNMEASURED, UNREAD

if TYPE_CHECKING:
    from pytest_opprof.plugin.fixtures import Opprof

_MARKER: Final = (
    "profile(activities=None, *, schedule=None, wait=0, warmup=1, active=3, repeat=0, skip_first=0, "
    "record_shapes=False, limits=(), gates=None, trace=False, ...): measure this test op by op; "
    "arguments as torch.profiler.profile's and schedule's"
)


# The options that a session must not ignore silently, with what an empty one means.
_GATES: Final = {"opprof_baseline": "nothing is compared", "opprof_save": "nothing is saved"}


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options and their ini keys; keep the parser, which tells paths from options' values."""
    add_options(parser)
    config = pluginmanager.get_plugin("pytestconfig")
    assert isinstance(config, pytest.Config), "pytest registers it before any plugin"
    config.stash[PARSER] = parser


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Name our library to ITT and NVTX before a conftest can call them.

    ITT if it is requested or nothing else sees torch's ops, NVTX if it is requested.
    """
    asked = _asked_sources(early_config, args)
    has_compiler = os.environ.get("CXX") or any(map(shutil.which, ("c++", "g++", "clang++")))
    by_itt = "itt" in asked or "ops-itt" in asked or not has_compiler
    if by_itt or "nvtx" in asked:
        from pytest_opprof.capture.injection import ITT, NVTX  # noqa: PLC0415  # loaded where it is needed

        wanted = [injection for injection, is_wanted in ((ITT, by_itt), (NVTX, "nvtx" in asked)) if is_wanted]
        early_config.stash[ARMING] = [problem for problem in (one.arm() for one in wanted) if problem]


def _asked_sources(config: pytest.Config, args: list[str]) -> list[str]:
    """The requested sources, read before pytest has parsed all plugins' options."""
    option = "--opprof-capture"
    given = [arg.partition("=")[2] for arg in args if arg.startswith(f"{option}=")]
    given += [value for arg, value in itertools.pairwise(args) if arg == option]
    text = given[-1] if given else config.getini("opprof_capture") or ""
    return [source.strip() for source in str(text).split(",")]


def pytest_configure(config: pytest.Config) -> None:
    """Read the options; if tests run in workers, join their results."""
    config.addinivalue_line("markers", _MARKER)
    options = config.stash[OPTIONS] = read_options(config)
    config.stash[UNREAD] = set()
    if options.mode == "off" and any(config.getoption(name) for name in _GATES):
        from pytest_opprof.plugin.opening import leave_off  # noqa: PLC0415  # loaded where it is needed

        leave_off(config)
    if _distributes(config) and options.mode != "off":
        from pytest_opprof.plugin.controller import ControllerHooks  # noqa: PLC0415  # as above

        _hear_failures(config)
        try:
            config.pluginmanager.register(ControllerHooks(), "opprof-controller")
        except OSError as error:
            if options.asks_for_something:
                raise pytest.UsageError(f"opprof: workers share a temporary folder: {error}") from error


def _distributes(config: pytest.Config) -> bool:
    """Whether xdist runs the tests in workers of this process: it needs to know where, too."""
    is_given = config.getoption("dist", "no") != "no" and config.getoption("tx", None)
    return bool(is_given) and not config.option.collectonly and not hasattr(config, "workerinput")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Name empty options: often a variable in a CI job that is not set."""
    empty = {name: effect for name, effect in _GATES.items() if config.getoption(name) == ""}
    return [f"opprof: --{name.replace('_', '-')} is empty: {effect}" for name, effect in empty.items()]


def _hear_failures(config: pytest.Config) -> None:
    """Keep failed reports, only if requested, because each test has three reports."""
    heard = _FailedReports()
    config.stash[FAILED] = heard.by_test
    config.pluginmanager.register(heard, "opprof-reports")


class _FailedReports:
    """Keeps the reports that pytest counts as failed: other plugins may replace one of ours, or drop it."""

    def __init__(self) -> None:
        self.by_test: dict[str, pytest.TestReport] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count as pytest does."""
        if report.failed and not hasattr(report, "wasxfail"):
            self.by_test[report.nodeid] = report


@pytest.hookimpl(wrapper=True)
def pytest_ignore_collect(
    collection_path: Path, config: pytest.Config
) -> Generator[None, bool | None, bool | None]:
    """Note ignored files: their tests are not missing."""
    ignored = yield
    if ignored:
        config.stash[UNREAD].add(collection_path)
    return ignored


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Note modules that cannot be imported, or skip themselves."""
    report = yield
    if not report.passed:
        collector.config.stash[UNREAD].add(collector.path)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, object, object]:
    """Make our session if there are marked tests: chosen ones, and those that others deselected."""
    collected = list(items)
    result = yield  # a conftest may add our marker here
    options = config.stash[OPTIONS]
    if options.mode == "off":
        return result
    notes = []
    if options.marks:
        from pytest_opprof.plugin.opening import mark_tests  # noqa: PLC0415  # loaded where it is needed

        notes = mark_tests(config, {*collected, *items})
    marked = {item for item in {*collected, *items} if _is_marked(item)}
    chosen = [item for item in items if item in marked] if marked else []
    if options.mode == "only" and len(chosen) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in marked])
        items[:] = chosen
    if marked or notes or options.asks_for_something or options.mode == ALWAYS:
        from pytest_opprof.plugin.opening import open_session  # noqa: PLC0415  # as above

        _hear_failures(config)
        open_session(config, marked=marked, chosen=chosen, notes=notes)
    return result


def _is_marked(item: pytest.Item) -> bool:
    """Whether a test is to be profiled. A doctest has its module's marker unintentionally."""
    if isinstance(item, pytest.Function):
        return item.get_closest_marker("profile") is not None
    return any(mark.name == "profile" for mark in item.own_markers)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Choose the last size of each test that grows: `--ff` has now put failed tests first."""
    if SESSION in session.config.stash:
        from pytest_opprof.plugin.opening import plan_growth  # noqa: PLC0415  # as above

        plan_growth(session.config, session.items)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Print the header: only now we know whether there is one."""
    if SESSION not in config.stash and ASIDE not in config.stash:
        return []
    from pytest_opprof.plugin.opening import header  # noqa: PLC0415  # as above

    return header(config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note which test runs, for the process that reports a death."""
    session = item.config.stash.get(SESSION, None)
    if session is None:
        return (yield)
    session.prepare(item)
    if not session.watches(item):
        return (yield)
    from pytest_opprof.plugin.flight import recorded  # noqa: PLC0415  # as above

    with recorded(item, always=session.options.mode == ALWAYS):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Note the seeds of a marked test's fixtures."""
    __tracebackhide__ = True
    session = request.config.stash.get(SESSION, None)
    if session is None:
        return (yield)
    with session.seeds.fixture(fixturedef):
        return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Measure a marked test: innermost, so output and logging are captured as the test's own."""
    session = item.config.stash.get(SESSION, None)
    stepping = session.stepping_of(item) if session else None
    if stepping is None:
        return (yield)
    from pytest_opprof.profiler.step_tracker import own_steps  # noqa: PLC0415  # as above

    with own_steps(), stepping.around(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Judge the measurement: a failed gate is a failed test."""
    report = yield
    session = item.config.stash.get(SESSION, None)
    if session and (call.when == "call" or (call.when == "setup" and not report.passed)):
        session.judge(item, call, report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Hand over the result once the test's fixtures no longer replace what writes it."""
    try:
        return (yield)
    finally:
        session = item.config.stash.get(SESSION, None)
        if session:
            session.torn_down(item)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_benchmark_generate_machine_info(config: pytest.Config) -> dict[str, Any]:
    """Ask pytest-benchmark's other plugins once: each answer takes more than a second."""
    from pytest_opprof.plugin.benchmarks import machine_info  # noqa: PLC0415  # as above

    return machine_info(config, without=sys.modules[__name__])


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_json(config: pytest.Config, output_json: dict[str, Any]) -> None:
    """Add the environment to pytest-benchmark's file, as to our documents."""
    session = config.stash.get(SESSION, None)
    if session:
        from pytest_opprof.plugin.benchmarks import leave_environment  # noqa: PLC0415  # as above

        leave_environment(output_json, session)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """After the tests, and before reports that read the exit status."""
    ours = session.config.stash.get(SESSION, None)
    if ours:
        from pytest_opprof.plugin.closing import finish  # noqa: PLC0415  # as above

        finish(ours, session)
    if UNMEASURED in session.config.stash:
        from pytest_opprof.plugin.opening import fail_unmeasured  # noqa: PLC0415  # as above

        fail_unmeasured(session)
    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print results of all marked tests."""
    session = config.stash.get(SESSION, None)
    if session:
        from pytest_opprof.plugin.closing import summarize  # noqa: PLC0415  # as above

        summarize(session, terminalreporter)
    if UNMEASURED in config.stash:
        terminalreporter.write_line(config.stash[UNMEASURED], yellow=True)
    timers = sys.modules.get("pytest_opprof.timers")  # loaded only by --benchmark-timer
    note = None if timers is None else timers.host_alone()
    if note:
        terminalreporter.write_line(note, yellow=True)


@pytest.fixture
def opprof(request: pytest.FixtureRequest) -> Opprof:
    """Step through a profiled test yourself, and look at what was recorded.

    `step()` ends a step; `record_function(name)` names a range; `counts` and `key_averages()` are over the
    finished active steps. In a test without ``@pytest.mark.profile``, with ``--opprof=off`` or where capture
    failed, steps do nothing and there is nothing to see. Where nothing can be measured, a marked test that
    looks is skipped.
    """
    from pytest_opprof.plugin.fixtures import fixture_for  # noqa: PLC0415

    return fixture_for(request.node)
