"""Plugins that tests run together with ours, and their descriptions for docs/plugins.md."""

from __future__ import annotations

from dataclasses import dataclass, field

# Each project's test file; {marks} and {test} are a plugin's own.
_TESTS = """\
import pytest
from pytest_opprof import record_function
{imports}

MORE = 0

def work():
    for _ in range(1 + MORE):
        with record_function("work"):
            pass

@pytest.mark.profile
def test_plain():
    work()

@pytest.mark.profile
@pytest.mark.parametrize("number", [1, 2])
def test_each(number):
    work()

{test}
"""


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A plugin that a project uses.

    Attributes:
        package: What pip calls it.
        plugin: What ``-p`` calls it.
        what: What happens, in the page's words.
        arguments: Arguments that activate it.
        imports: Imports of its test.
        test: A test that uses it.
    """

    package: str
    plugin: str
    what: str
    arguments: tuple[str, ...] = ()
    imports: str = ""
    test: str = ""
    files: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The project's tests."""
        return _TESTS.format(imports=self.imports, test=self.test)


_RERUN = "a failed gate is run again; the last run's measurement counts"
_LOOP = "each call runs in the test's own event loop, with the same fixtures"
_SAME = "no difference"
_FEATURE = """\
Feature: Work
    Scenario: It works
        When it works
"""

PLUGINS = (
    Beside(
        package="pytest-xdist",
        plugin="xdist",
        arguments=("-n", "2"),
        what="each worker measures and judges, in all modes of `--dist`; the verdicts are those without it",
    ),
    Beside(package="pytest-randomly", plugin="randomly", what=_SAME),
    Beside(package="pytest-rerunfailures", plugin="rerunfailures", arguments=("--reruns=1",), what=_RERUN),
    Beside(package="flaky", plugin="flaky.flaky_pytest_plugin", arguments=("--force-flaky",), what=_RERUN),
    Beside(
        package="pytest-timeout",
        plugin="timeout",
        arguments=("--timeout=300",),
        what="the time is that of all calls of a test together",
    ),
    Beside(
        package="pytest-cov",
        plugin="pytest_cov",
        arguments=("--cov=.", "--cov-report="),
        what="no difference; what its tracer allocates is not the test's: see [gates.md](gates.md#what-a-value-depends-on)",
    ),
    Beside(
        package="pytest-asyncio",
        plugin="asyncio",
        what=_LOOP,
        test="@pytest.mark.profile\n@pytest.mark.asyncio\nasync def test_async():\n    work()\n",
    ),
    Beside(
        package="anyio",
        plugin="anyio",
        what=_LOOP,
        test="@pytest.mark.profile\n@pytest.mark.anyio\nasync def test_async():\n    work()\n",
        files={
            "conftest.py": "import pytest\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
        },
    ),
    Beside(
        package="pytest-trio",
        plugin="trio",
        what=_LOOP,
        test="@pytest.mark.profile\n@pytest.mark.trio\nasync def test_async():\n    work()\n",
    ),
    Beside(
        package="pytest-subtests",
        plugin="subtests",
        what="subtests are part of their test's steps; pytest counts those of the first call alone",
        test="@pytest.mark.profile\ndef test_parts(subtests):\n    with subtests.test(part=1):\n        work()\n",
    ),
    Beside(
        package="pytest-split",
        plugin="pytest-split",
        arguments=("--splits=2", "--group=1"),
        what="a save certifies the tests of its group",
    ),
    Beside(
        package="pytest-forked",
        plugin="pytest_forked",
        arguments=("--forked",),
        what="each child measures and judges its test; the session has all results",
    ),
    Beside(
        package="pytest-repeat",
        plugin="pytest_repeat",
        arguments=("--count=2",),
        what="each repetition is a test of its own",
    ),
    Beside(
        package="pytest-bdd",
        plugin="pytest-bdd",
        what="each call runs all steps of the scenario",
        imports="from pytest_bdd import scenario, when",
        test=(
            "@pytest.mark.profile\n@scenario('work.feature', 'It works')\ndef test_scenario():\n    pass\n\n"
            "@when('it works')\ndef _():\n    work()\n"
        ),
        files={"work.feature": _FEATURE},
    ),
    Beside(
        package="pytest-memray",
        plugin="memray",
        arguments=("--memray",),
        what="it sees the memory of all calls of a test together",
    ),
    Beside(
        package="pytest-codspeed",
        plugin="codspeed",
        what="what a test benchmarks is profiled after it was timed: see [benchmark.md](benchmark.md)",
        test=(
            "@pytest.mark.profile\ndef test_benchmark(codspeed_benchmark, opprof):\n"
            "    opprof.benchmark(codspeed_benchmark, work)\n"
        ),
    ),
    Beside(
        package="pytest-benchmark",
        plugin="benchmark",
        what="what a test benchmarks is profiled after it was timed: see [benchmark.md](benchmark.md)",
        test="@pytest.mark.profile\ndef test_benchmark(benchmark):\n    benchmark(work)\n",
    ),
)
