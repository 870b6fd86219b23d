"""Verdicts, and which of them fail."""

import pytest

from pytest_opprof.compare.verdicts import DEFAULT_FAIL_ON, Verdict, parse_fail_on, worst
from pytest_opprof.errors import UsageError


def test_worst_verdict_wins() -> None:
    assert worst([Verdict.PASS, None, Verdict.CHANGED, Verdict.REGRESSED]) is Verdict.REGRESSED
    assert worst([None]) is None


def test_default_fails_on_every_doubtful_verdict() -> None:
    fail_on = parse_fail_on(DEFAULT_FAIL_ON)
    failing = {verdict for verdict in Verdict if fail_on.fails(verdict)}
    assert failing == {Verdict.REGRESSED, Verdict.MISSING, Verdict.INCONCLUSIVE, Verdict.ERROR}
    assert fail_on.no_baseline
    assert not fail_on.fails(None)


def test_none_fails_on_nothing() -> None:
    fail_on = parse_fail_on("none")
    assert not fail_on.no_baseline
    assert not any(map(fail_on.fails, Verdict))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("regresed", "unknown verdict 'regresed' (did you mean 'regressed'?)"),
        ("regressed,improved", "'improved' is never a failure"),
        ("pass", "'pass' is never a failure"),
        ("accepted", "'accepted' is never a failure"),
        ("xyz", "unknown verdict 'xyz' (choose from: error, regressed"),
        ("", "name the verdicts that fail, or 'none' alone"),
        ("none,error", "name the verdicts that fail, or 'none' alone"),
    ],
)
def test_misunderstood_verdicts_are_usage_errors(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_fail_on(text)
    assert str(caught.value).startswith(f"--opprof-fail-on: {sentence}")
