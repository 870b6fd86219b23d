"""The pause before a request is repeated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_opprof.forge.retry import RetryPolicy, is_busy


@given(st.integers(1, 30), st.floats(0, 1))
def test_pauses_double_up_to_a_minute(tried: int, luck: float) -> None:
    pause = RetryPolicy(draw=lambda: luck).pause(tried, {})
    whole = min(2.0 ** (tried - 1), 60.0)
    assert whole / 2 <= pause <= whole


@given(st.text() | st.floats().map(str) | st.integers().map(str), st.text() | st.floats().map(str))
def test_no_header_makes_an_invalid_pause(retry_after: str, reset: str) -> None:
    headers = {"retry-after": retry_after, "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}
    retry = RetryPolicy(now=lambda: 1e9, draw=lambda: 0.5)
    pause = retry.pause(1, headers)
    assert pause > 0
    assert retry.until(pause)


@pytest.mark.parametrize(
    ("status", "headers", "busy"),
    [
        (200, {}, False),
        (403, {}, False),
        (403, {"x-ratelimit-remaining": "1"}, False),
        (403, {"x-ratelimit-remaining": "0"}, True),
        (403, {"retry-after": "1"}, True),
        (404, {"retry-after": "1"}, False),
        (422, {}, False),
        (429, {}, True),
        (500, {}, True),
        (501, {}, False),
        (504, {}, True),
    ],
)
def test_only_temporary_errors_are_busy(status: int, headers: dict[str, str], *, busy: bool) -> None:
    assert is_busy(status, headers, b"") is busy
