"""Why a test cannot be called again, in a sentence that says what to do."""

import pytest

from pytest_opprof.errors import CaptureBusyError
from pytest_opprof.plugin.shortfall import REPEATABLE, unrepeatable


class FixtureAlreadyUsed(Exception):  # noqa: N818  # as pytest-benchmark calls it
    """What pytest-benchmark raises where its fixture is called twice."""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (FileExistsError(), f"cannot be repeated: call 2 raised FileExistsError. {REPEATABLE}"),
        (
            FixtureAlreadyUsed(),
            "cannot be repeated: call 2 raised FixtureAlreadyUsed. Make `benchmark` an argument of the test",
        ),
        (
            CaptureBusyError("busy"),
            "the test profiles itself: call 2 raised CaptureBusyError. Leave out its own profiler, or the marker",
        ),
    ],
)
def test_unrepeatable_test_says_what_to_do(error: Exception, told: str) -> None:
    assert unrepeatable(error, call=2) == told
