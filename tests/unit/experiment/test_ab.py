"""How long an A/B waits for a process."""

from pytest_opprof.experiment.ab import default_timeout


def test_tests_may_wait_for_a_quiet_machine_as_long_as_they_are_told() -> None:
    """On a quiet machine the uncounted processes are quick, and later ones may spend all of their time."""
    assert default_timeout(1.0, max_time=0, tests=100) == 300
    assert default_timeout(60.0, max_time=0, tests=100) == 1_200
    assert default_timeout(60.0, max_time=30.0, tests=100) == 1_200 + 6_000
