"""Runs the tests that a process was given, all of them and in this order: loaded by name in fresh processes.

The session that gave them has chosen already. A plugin that chooses again, such as pytest-split of each
half another half, would leave the rest unmeasured.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest


# Inside of the wrapper that plans what is measured, and around all that choose.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, object, object]:
    """Put back what other plugins deselected or put in another order."""
    given = list(items)
    result = yield
    items[:] = given
    return result
