"""Real pytest items, collected in this process by a pytest that loads only our plugin."""

from collections.abc import Callable

import pytest

MakeItem = Callable[[str], pytest.Item]


@pytest.fixture
def lone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A pytester whose configurations load only our plugin."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makeini("[pytest]\naddopts = -p opprof\n")
    return pytester


@pytest.fixture
def make_item(lone: pytest.Pytester) -> MakeItem:
    """The only test of a module with this source, which imports pytest and our package."""

    def make(source: str) -> pytest.Item:
        return lone.getitem(
            f"import pytest\nfrom pytest_opprof import ProfilerAction as A\n{source}", "test_it"
        )

    return make
