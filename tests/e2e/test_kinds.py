"""All kinds of test functions: each is called as planned, and fails, skips and warns as without us."""

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

CONFTEST = """\
    import pytest

    @pytest.fixture
    def number():
        return 7

    @pytest.fixture(scope="class")
    def expensive(request):
        request.cls.made = getattr(request.cls, "made", 0) + 1
        return request.cls.made
"""

# Every test runs one range in each of its three active steps, unless its name says otherwise.
KINDS = """\
    import asyncio, contextlib, functools, unittest, unittest.mock
    import pytest
    from pytest_opprof import record_function

    pytestmark = pytest.mark.profile

    def work():
        with record_function("work"):
            pass

    def test_plain(number):
        work()
        assert number == 7

    @pytest.mark.parametrize("count", [0, 2])
    def test_parametrized(count):
        for _ in range(count):
            work()

    class TestClass:
        def test_method(self, number):
            work()
            assert number == 7

        @staticmethod
        def test_static(number):
            work()
            assert number == 7

        @classmethod
        def test_class_method(cls):
            work()
            assert cls is TestClass

        def test_class_scoped_fixture(self, expensive):
            work()
            assert expensive == self.made == 1

    def decorated(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with record_function("decoration"):
                return function(*args, **kwargs)
        return wrapper

    @decorated
    def test_decorated(number):
        work()
        assert number == 7

    @unittest.mock.patch("os.getcwd", return_value="nowhere")
    def test_patched(getcwd, number):
        work()
        assert getcwd() == "nowhere" and number == 7

    @contextlib.contextmanager
    def around():
        with record_function("around"):
            yield

    @around()
    def test_context_manager_as_decorator():
        work()

    class TestOld(unittest.TestCase):
        ups = downs = 0

        def setUp(self):
            type(self).ups += 1

        def tearDown(self):
            type(self).downs += 1

        def test_unittest(self):
            work()
            self.assertEqual((self.ups, self.downs), (1, 0))

        @unittest.skip("not today")
        def test_unittest_skipped(self):
            raise AssertionError

        @unittest.expectedFailure
        def test_unittest_expected_failure(self):
            raise AssertionError

    class TestOldAsync(unittest.IsolatedAsyncioTestCase):
        async def asyncSetUp(self):
            self.loop = asyncio.get_running_loop()

        async def test_unittest_async(self):
            await asyncio.sleep(0)
            work()
            self.assertIs(asyncio.get_running_loop(), self.loop)

    @pytest.mark.asyncio
    async def test_async(number):
        await asyncio.sleep(0)
        work()
        assert number == 7

    class TestAsync:
        @pytest.mark.asyncio
        async def test_async_method(self):
            await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))
            work()

    async def test_async_without_a_runner():
        work()

    def test_returning_something():
        work()
        return 5

    def test_dynamic_fixture(request):
        work()
        assert request.getfixturevalue("number") == 7
"""

MEASURED = [
    *("test_plain", "test_parametrized[2]", "test_parametrized[0]", "test_method", "test_static"),
    *("test_class_method", "test_class_scoped_fixture", "test_decorated", "test_patched"),
    *("test_context_manager_as_decorator", "test_unittest", "test_unittest_async", "test_async"),
    *("test_async_method", "test_dynamic_fixture"),
]


@pytest.fixture(scope="module")
def kinds(make_project: MakeProject) -> Session:
    project = make_project("kinds")
    project.write("conftest.py", CONFTEST)
    project.write("test_it.py", KINDS)
    return project.pytest(plugins=("asyncio",))


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURED)
def test_every_kind_of_test_is_measured_in_each_step(kinds: Session, name: str) -> None:
    counts = {"test_parametrized[0]": 0, "test_parametrized[2]": 2}
    test = kinds.result(name)
    assert test.measurement.reason == ""
    assert test.steps == 3
    own = {row.name: row.count.low for row in test.ops if row.count.is_constant}
    assert own.get("work", 0) == counts.get(name, 1)
    assert own["ProfilerStep*"] == 1


def test_decorated_tests_are_measured(kinds: Session) -> None:
    assert [row.count.low for row in kinds.result("test_decorated").ops if row.name == "decoration"] == [1]
    around = kinds.result("test_context_manager_as_decorator")
    assert [row.count.low for row in around.ops if row.name == "around"] == [1]


def test_tests_that_do_not_pass_are_not_measured(kinds: Session) -> None:
    assert kinds.exit_code == pytest.ExitCode.TESTS_FAILED
    assert {name for name, outcome in kinds.outcomes.items() if outcome == "failure"} == {
        "test_async_without_a_runner",
        "test_returning_something",
    }
    assert {name for name, outcome in kinds.outcomes.items() if outcome == "skipped"} == {
        "test_unittest_skipped",
        "test_unittest_expected_failure",
    }
    reasons = {name: kinds.result(name).measurement.reason for name in kinds.outcomes if name not in MEASURED}
    assert reasons == {
        "test_async_without_a_runner": "the test was failed",
        "test_returning_something": "the test was failed",
        "test_unittest_skipped": "the test was skipped",
        "test_unittest_expected_failure": "the test was skipped",
    }


def test_pytest_complaints_survive(kinds: Session) -> None:
    assert "async def functions are not natively supported" in kinds.failures["test_async_without_a_runner"]
    assert "returned" in kinds.failures["test_returning_something"]


@pytest.mark.skipif(pytest.version_tuple < (9,), reason="subtests came with pytest 9")
def test_subtests_are_measured_with_their_test(project: Project) -> None:
    project.write(
        "test_it.py",
        """\
        import pytest
        from pytest_opprof import record_function

        @pytest.mark.profile
        def test_it(subtests):
            for i in range(2):
                with subtests.test(i=i), record_function("work"):
                    pass
        """,
    )
    session = project.pytest()
    assert session.exit_code == 0
    assert session.result("test_it").totals["ranges.count"].low == 2


def test_anyio_tests_are_measured(project: Project) -> None:
    pytest.importorskip("anyio")
    project.write(
        "test_it.py",
        """\
        import anyio, pytest
        from pytest_opprof import record_function

        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["asyncio"])
        @pytest.mark.profile
        async def test_it(anyio_backend):
            await anyio.sleep(0)
            with record_function("work"):
                pass
        """,
    )
    session = project.pytest(plugins=("anyio",))
    assert session.exit_code == 0
    assert session.result("test_it[asyncio]").totals["ranges.count"].low == 1
