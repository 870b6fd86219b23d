"""The age of a baseline, in words."""

from datetime import timedelta

import pytest

from pytest_opprof.baselines.resolve import age_in_words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "less than a minute"),
        (59, "less than a minute"),
        (60, "1 minute"),
        (3_599, "59 minutes"),
        (3_600, "1 hour"),
        (86_399, "23 hours"),
        (86_400, "1 day"),
        (3 * 86_400, "3 days"),
    ],
)
def test_age_uses_the_largest_filled_unit(seconds: int, words: str) -> None:
    assert age_in_words(timedelta(seconds=seconds)) == words
