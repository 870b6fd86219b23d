"""The process-wide step count, which a test must not change for others."""

from e2e.project import Project

TESTS = """\
    import pytest
    from pytest_opprof import KinetoStepTracker

    @pytest.mark.parametrize("number", [1, 2])
    @pytest.mark.profile(warmup=0, active=2)
    def test_counts_from_zero(number):
        KinetoStepTracker.increment_step("mine")
        assert KinetoStepTracker.current_step() in (1, 2)  # a call, a step

    def test_finds_nothing_of_it():
        assert KinetoStepTracker.current_step() == 0
        assert not KinetoStepTracker.erase_step_count("mine")
"""


def test_marked_tests_count_apart(project: Project) -> None:
    project.write("test_it.py", TESTS)
    session = project.pytest("-p", "no:randomly")
    assert set(session.outcomes.values()) == {"passed"}
    assert len(session.outcomes) == 3
