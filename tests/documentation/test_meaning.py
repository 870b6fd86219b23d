"""Whether shown and printed output match."""

import pytest
from documentation.meaning import means


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("saved as main@569ba9a", "saved as main@1a2b3c4"),
        ("self CPU  11.7 µs", "self CPU 4.1 ms"),
        ("2026-11-22 05:58  569ba9a", "2025-01-02 03:04 1a2b3c4"),
        ("one\ntwo\nthree", "...\nthree"),
        ("one\ntwo\nthree", "one\n..."),
        ("one\ntwo\nthree", "one\n...\nthree"),
        ("one\nthree", "one\n...\nthree"),
        ("a b c", "a ... c"),
        ("======== opprof =======", "===== opprof ===="),
        ("one\n\ntwo  \n", "one\ntwo"),
    ],
)
def test_run_dependent_values_may_differ(printed: str, shown: str) -> None:
    assert means(printed, shown)


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("12 ops", "13 ops"),
        ("one\ntwo", "one"),
        ("one", "one\ntwo"),
        ("one\ntwo", "two\n..."),
        ("one\ntwo\nthree", "...\ntwo"),
        ("one\ntwo\nthree", "...\nthree\n...\ntwo\n..."),
        ("", "one"),
        ("PASS", "REGRESSED"),
    ],
)
def test_other_output_does_not_match(printed: str, shown: str) -> None:
    assert not means(printed, shown)
