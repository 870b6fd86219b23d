"""The requested share of ops."""

import math

import pytest

from pytest_opprof import profile
from pytest_opprof.capture.sources import parse_sampling
from pytest_opprof.errors import UsageError
from pytest_opprof.profiler.kineto_profile import KinetoProfile
from pytest_opprof.units import format_share, parts_per_million


@pytest.mark.parametrize("given", [1e-6, 0.01, 0.5, 1, 1.0])
def test_valid_shares_are_accepted(given: float) -> None:
    assert parse_sampling(given, where="here") == given


@pytest.mark.parametrize("given", [0, 1e-7, -0.5, 1.01, 100, math.nan, math.inf, True, "1%", None])
def test_invalid_shares_are_refused(given: object) -> None:
    with pytest.raises(UsageError, match=r"^here: sampling is .*from 1e-06 \(one in a million\) to 1"):
        parse_sampling(given, where="here")


@pytest.mark.parametrize("make", [profile, KinetoProfile])
def test_profilers_refuse_invalid_shares(make: type[KinetoProfile]) -> None:
    with pytest.raises(UsageError, match=rf"^{make.__name__}\(\): sampling is 0;"):
        make(sampling=0)


def test_a_document_never_rounds_a_share_to_all_or_nothing() -> None:
    shares = [1e-6, 1.4e-6, 0.01, 0.999_999_9, 1.0]
    assert [parts_per_million(share) for share in shares] == [1, 1, 10_000, 999_999, 1_000_000]
    assert [format_share(share) for share in (1e-6, 0.01, 0.125)] == ["0.0001%", "1%", "12.5%"]
