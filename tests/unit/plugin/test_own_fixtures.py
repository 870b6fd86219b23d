"""Which fixtures keep a second process from running a test while this one has it set up."""

import pytest
from unit.plugin.conftest import MakeItem

from pytest_opprof.plugin.certify import must_run_alone

MODULE_FIXTURE = "@pytest.fixture(scope='module')\n{}\ndef data(): return 1\ndef test_it(data): pass"
WITH_SETUP = "def {}(*_): pass\ndef test_it(tmp_path): pass"
IN_A_CLASS = "class TestIt:\n    def {}(self): pass\n    def test_it(self): pass"
OF_UNITTEST = """\
import unittest
class TestIt(unittest.TestCase):
    {}
    def test_it(self): pass
"""
BY_NAME = """\
@pytest.fixture(scope="session")
def data(): return 1
@pytest.fixture
def asks(request): return request.getfixturevalue("data")
def test_it(asks): pass
"""


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(MODULE_FIXTURE.format(""), id="fixture that outlives it"),
        pytest.param(
            "from pytest_opprof import record_function\n" + MODULE_FIXTURE.format("@record_function('data')"),
            id="installed decorator",
        ),
        pytest.param(WITH_SETUP.format("setup_module"), id="setup_module"),
        pytest.param(WITH_SETUP.format("teardown_module"), id="teardown_module"),
        pytest.param(IN_A_CLASS.format("setup_class"), id="setup_class"),
        pytest.param(OF_UNITTEST.format("@classmethod\n    def setUpClass(cls): pass"), id="setUpClass"),
    ],
)
def test_test_with_fixtures_that_outlive_it_runs_alone(make_item: MakeItem, source: str) -> None:
    assert must_run_alone(make_item(source))


OF_A_LIBRARY = (
    "import platform\n{0} = pytest.fixture(scope='session')(platform.machine)\ndef test_it({0}): pass"
)


@pytest.mark.parametrize(("fixture", "runs_alone"), [("django_db_setup", True), ("other", False)])
def test_test_with_a_librarys_database_runs_alone(
    make_item: MakeItem, fixture: str, runs_alone: bool
) -> None:
    assert must_run_alone(make_item(OF_A_LIBRARY.format(fixture))) is runs_alone


def test_fixture_asked_for_by_name_counts_once_it_is_set_up(make_item: MakeItem) -> None:
    item = make_item(BY_NAME)
    state = item.session._setupstate
    state.setup(item)
    try:
        assert must_run_alone(item)
    finally:
        state.teardown_exact(None)


def test_parameters_are_no_fixtures(lone: pytest.Pytester) -> None:
    many = "import pytest\n@pytest.mark.parametrize('size', [1], scope='module')\ndef test_it(size): pass"
    assert not must_run_alone(lone.getitem(many, "test_it[1]"))


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("def test_it(tmp_path, monkeypatch, capsys): pass", id="installed fixtures"),
        pytest.param(
            "@pytest.fixture\ndef data(tmp_path): return 1\ndef test_it(data): pass", id="value alone"
        ),
        pytest.param(OF_UNITTEST.format("def setUp(self): pass"), id="unittest"),
        pytest.param("@pytest.fixture\ndef data(): yield\ndef test_it(data): pass", id="fixture that yields"),
        pytest.param(
            "@pytest.fixture\ndef data(request): request.addfinalizer(print)\ndef test_it(data): pass",
            id="finalizer",
        ),
        pytest.param(WITH_SETUP.format("setup_function"), id="setup_function"),
        pytest.param(IN_A_CLASS.format("teardown_method"), id="teardown_method"),
        pytest.param(
            "def make():\n"
            "    def data(): return data\n"
            "    return data\n"
            "data = pytest.fixture(make())\n"
            "def test_it(data): pass",
            id="function that names itself",
        ),
    ],
)
def test_test_with_fixtures_of_its_own_does_not(make_item: MakeItem, source: str) -> None:
    assert not must_run_alone(make_item(source))
