"""A failed gate is a failed test for every pytest option and plugin."""

from xml.etree import ElementTree as ET

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

TESTS = """\
    import pytest
    from pytest_opprof import record_function

    def work(times):
        for _ in range(times):
            with record_function("work"):
                pass

    @pytest.mark.profile
    def test_first(request):
        request.node.user_properties.append(("mine", 7))
        work(1)

    @pytest.mark.profile
    def test_second():
        work(1)

    @pytest.mark.profile
    def test_third():
        work(1)

    @pytest.mark.profile
    def test_fourth():
        work(1)

    def test_plain():
        pass
"""
FAILED = {"test_first", "test_third", "test_fourth"}
NAMES = ("test_first", "test_second", "test_third", "test_fourth", "test_plain")
ALL = {name: "failure" if name in FAILED else "passed" for name in NAMES}


def regressed(project: Project) -> Project:
    """A project in which three of five tests run more ops."""
    project.write("test_it.py", TESTS)
    project.pytest("--opprof-save=main")
    text = (project.folder / "test_it.py").read_text()
    for name in FAILED:
        head, _, tail = text.partition(f"def {name}(")
        text = f"{head}def {name}({tail.replace('work(1)', 'work(2)', 1)}"
    (project.folder / "test_it.py").write_text(text)
    return project


def verdicts(session: Session) -> dict[str, str]:
    """Each test's verdict, from the properties of its report; the last one for a rerun test."""
    return {
        case.attrib["name"].partition("@")[0]: one.attrib["value"]
        for case in ET.parse(session.junit).iter("testcase")  # noqa: S314  # pytest wrote it a moment ago
        for one in case.iter("property")
        if one.attrib["name"] == "opprof.verdict"
    }


@pytest.fixture(scope="module")
def shared(make_project: MakeProject) -> Project:
    """A project to be read, and not changed."""
    return regressed(make_project("terms"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        (
            *("--import-mode=append", "--pdb", "-p", "timeout", "--timeout=300"),
            *("-p", "asyncio", "-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=session"),
        ),
        ("--import-mode=importlib", "-p", "rerunfailures", "--reruns=1"),
    ],
    ids=["pdb-timeout-asyncio", "reruns"],
)
def test_other_plugins_and_modes_change_no_verdict(shared: Project, arguments: tuple[str, ...]) -> None:
    for module in ("pytest_timeout", "pytest_asyncio", "pytest_rerunfailures"):
        if module.partition("_")[2] in arguments:
            pytest.importorskip(module)
    assert shared.pytest("--opprof-baseline=main", *arguments).outcomes == ALL


def test_junit_has_the_verdict_and_the_counts(shared: Project) -> None:
    session = shared.pytest("--opprof-baseline=main")
    found = {
        case.attrib["name"]: {one.attrib["name"]: one.attrib["value"] for one in case.iter("property")}
        for case in ET.parse(session.junit).iter("testcase")  # noqa: S314  # pytest wrote it a moment ago
    }
    assert found["test_first"]["mine"] == "7"
    assert found["test_first"]["opprof.verdict"] == "REGRESSED"
    assert found["test_first"]["opprof.ranges.count"] == "2"
    assert found["test_second"]["opprof.ranges.count"] == "1"
    assert found["test_second"]["opprof.verdict"] == "PASS"
    assert not any("time" in name for name in found["test_second"])
    assert found["test_plain"] == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "ran"),
    [
        (("-x",), NAMES[:1]),
        (("--maxfail=2",), NAMES[:3]),
        (("--sw", "--cache-clear"), NAMES[:1]),
        (("--deselect=test_it.py::test_first", "-x"), NAMES[1:3]),
    ],
    ids=" ".join,
)
def test_stopping_and_selection_are_unchanged(
    shared: Project, arguments: tuple[str, ...], ran: tuple[str, ...]
) -> None:
    session = shared.pytest("--opprof-baseline=main", *arguments)
    assert session.outcomes == {name: ALL[name] for name in ran}


@pytest.mark.slow
def test_last_failed_are_exactly_the_failed_gates(project: Project) -> None:
    regressed(project)
    assert project.pytest("--opprof-baseline=main").outcomes == ALL
    project.replace("test_it.py", "def test_third():\n    work(2)", "def test_third():\n    work(1)")
    again = project.pytest("--opprof-baseline=main", "--lf")
    assert again.outcomes == {"test_first": "failure", "test_third": "passed", "test_fourth": "failure"}
    # Stepwise continues where it stopped.
    stepwise = ("--opprof-baseline=main", "--sw")
    assert project.pytest(*stepwise).outcomes == {"test_first": "failure"}
    project.replace("test_it.py", "7))\n    work(2)", "7))\n    work(1)")
    assert list(project.pytest(*stepwise).outcomes) == list(NAMES[:4])


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--setup-plan", "--setup-only", "--collect-only", "--fixtures"])
def test_listing_sessions_save_and_judge_nothing(shared: Project, option: str) -> None:
    session = shared.pytest(option, "--opprof-baseline=main", "--opprof-save=other")
    assert session.exit_code == 0
    assert shared.stored("other") == []
    assert not session.document.exists()
    assert session.told == []
    assert "= opprof =" not in session.stdout


@pytest.mark.slow
def test_another_root_gives_the_same_verdicts(project: Project) -> None:
    root = ("--rootdir=..", "-c", "pytest.ini")
    project.write("test_it.py", TESTS)
    project.pytest(*root, "--opprof-save=main")
    project.replace("test_it.py", "7))\n    work(1)", "7))\n    work(2)")
    session = project.pytest(*root, "--opprof-baseline=main")
    assert {name for name, outcome in session.outcomes.items() if outcome == "failure"} == {"test_first"}
    assert session.result("test_first").node_id == "project/test_it.py::test_first"


@pytest.mark.slow
def test_last_rerun_counts(project: Project) -> None:
    pytest.importorskip("pytest_rerunfailures")
    project.write("test_it.py", TESTS)
    project.pytest("--opprof-save=main")
    project.replace(
        "test_it.py",
        "def test_second():\n    work(1)",
        # The first run and its second look are eight calls, without the counted ones.
        "def test_second(calls=[]):\n    calls.append(1)\n    work(2 if len(calls) <= 8 else 1)",
    )
    project.replace("test_it.py", "7))\n    work(1)", "7))\n    work(2)")
    options = ("--opprof-baseline=main", "--opprof-instructions=off", "--reruns=1")
    session = project.pytest(*options, plugins=("rerunfailures",))
    session.lines.fnmatch_lines(["*1 failed, 4 passed, 2 rerun in*"])
    assert {name for name, outcome in session.outcomes.items() if outcome == "failure"} == {"test_first"}
    assert session.result("test_second").totals["ranges.count"].high == 1
    session.lines.fnmatch_lines(["1 regressed, 3 passed * nothing dropped"])
    assert verdicts(session) == {
        "test_first": "REGRESSED",
        **dict.fromkeys(("test_second", "test_third", "test_fourth"), "PASS"),
    }


@pytest.mark.slow
def test_reruns_in_workers_give_the_same(shared: Project) -> None:
    pytest.importorskip("pytest_rerunfailures")
    pytest.importorskip("xdist")
    plugins = ("xdist", "rerunfailures")
    session = shared.pytest("-n", "2", "--reruns=1", "--opprof-baseline=main", plugins=plugins)
    assert session.outcomes == ALL
    session.lines.fnmatch_lines(["3 regressed, 1 passed * nothing dropped"])


@pytest.mark.slow
def test_a_timeout_covers_all_calls_of_a_test(project: Project) -> None:
    pytest.importorskip("pytest_timeout")
    project.write(
        "test_it.py",
        """\
        import threading
        import pytest

        @pytest.mark.timeout(1)
        @pytest.mark.profile
        def test_hangs_at_once():
            threading.Event().wait()

        @pytest.mark.timeout(1)
        @pytest.mark.profile
        def test_hangs_later(calls=[]):
            calls.append(1)
            if len(calls) > 1:
                threading.Event().wait()
        """,
    )
    session = project.pytest(plugins=("timeout",))
    assert session.outcomes == {"test_hangs_at_once": "failure", "test_hangs_later": "passed"}
    assert "Timeout" in session.failures["test_hangs_at_once"]
    assert session.result("test_hangs_later").measurement.reason.startswith(
        "cannot be repeated: call 2 raised Failed."
    )


DOCTESTS = """\
    '''A module with a doctest.

    >>> number
    7
    '''
    import pytest
    from pytest_opprof import record_function

    pytestmark = pytest.mark.profile

    def doubled(number):
        '''Twice a number.

        >>> doubled(2)
        4
        '''
        with record_function("work"):
            return number * 2

    def test_doubled():
        assert doubled(2) == 4
"""


@pytest.mark.slow
def test_doctests_beside_profiled_tests_just_run(project: Project) -> None:
    project.write(
        "conftest.py",
        "import pytest\n\n@pytest.fixture(autouse=True)\n"
        "def number(doctest_namespace):\n    doctest_namespace['number'] = 7\n",
    )
    project.write("test_it.py", DOCTESTS)
    project.write("test_it.txt", ">>> 1 + 1\n2\n")
    arguments = ("--doctest-modules", "--doctest-glob=*.txt")
    session = project.pytest(*arguments, "--opprof-save=main")
    assert session.exit_code == 0
    assert len(session.outcomes) == 4
    assert [test.node_id for test in session.run.tests] == ["test_it.py::test_doubled"]
    # A doctest's calls are no steps, and another run misses none.
    assert project.pytest(*arguments, "--opprof-baseline=main").exit_code == 0
    only = project.pytest(*arguments, "--opprof=only")
    assert only.outcomes == {"test_doubled": "passed"}


ASYNC = """\
    import asyncio
    import pytest, pytest_asyncio
    from pytest_opprof import record_function

    LOOPS = {}

    @pytest_asyncio.fixture(loop_scope="module", scope="module")
    async def module_loop():
        with record_function("setup"):
            yield asyncio.get_running_loop()

    @pytest_asyncio.fixture
    async def own_loop():
        yield asyncio.get_running_loop()

    async def work(loop):
        assert asyncio.get_running_loop() is loop
        with record_function("work"):
            await asyncio.sleep(0)

    @pytest.mark.asyncio(loop_scope="module")
    @pytest.mark.profile
    async def test_in_the_modules_loop(module_loop):
        await work(module_loop)

    @pytest.mark.asyncio
    @pytest.mark.profile
    async def test_in_a_loop_of_its_own(own_loop):
        await asyncio.gather(work(own_loop), asyncio.create_task(work(own_loop)))

    @pytest.mark.asyncio
    @pytest.mark.profile
    async def test_fails(own_loop):
        await work(None)
"""


@pytest.mark.slow
def test_async_tests_are_stepped_in_their_loop(project: Project) -> None:
    pytest.importorskip("pytest_asyncio")
    project.write("test_it.py", ASYNC)
    session = project.pytest(plugins=("asyncio",))
    assert session.outcomes == {
        "test_in_the_modules_loop": "passed",
        "test_in_a_loop_of_its_own": "passed",
        "test_fails": "failure",
    }
    for name, ranges in (("test_in_the_modules_loop", 1), ("test_in_a_loop_of_its_own", 2)):
        total = session.result(name).totals["ranges.count"]
        assert (session.result(name).steps, total.low, total.high) == (3, ranges, ranges)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [("-n", "2", "--dist=loadgroup"), ("--dist=each", "--tx=2*popen"), ("-n", "0", "--dist=load")],
    ids=" ".join,
)
def test_workers_give_each_test_its_verdict(shared: Project, arguments: tuple[str, ...]) -> None:
    pytest.importorskip("xdist")
    session = shared.pytest(*arguments, "--opprof-baseline=main", plugins=("xdist",))
    assert verdicts(session) == {
        name: "REGRESSED" if name in FAILED else "PASS" for name in NAMES if name != "test_plain"
    }
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    session.lines.fnmatch_lines(["3 regressed, 1 passed * nothing dropped"])
