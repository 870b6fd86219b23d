"""A test is called several times, but pytest reports its subtests once."""

import pytest
from e2e.project import Project

UNITTEST = """\
    import unittest
    import pytest

    class TestIt(unittest.TestCase):
        @pytest.mark.profile
        def test_it(self):
            for number in range(2):
                with self.subTest(number=number):
                    assert {expected}
"""
FIXTURE = """\
    import pytest

    @pytest.mark.profile
    def test_it(subtests):
        for number in range(2):
            with subtests.test(number=number):
                assert {expected}
"""
KINDS = pytest.mark.parametrize("text", [UNITTEST, FIXTURE], ids=["unittest", "fixture"])


@pytest.fixture
def plugins() -> tuple[str, ...]:
    """Older pytest releases need a plugin for subtests."""
    if pytest.version_tuple >= (9,):
        return ()
    pytest.importorskip("pytest_subtests")
    return ("subtests",)


@pytest.mark.slow
@KINDS
def test_a_failed_subtest_is_counted_once(project: Project, plugins: tuple[str, ...], text: str) -> None:
    project.write("test_it.py", text.format(expected="number == 0"))
    with_us = project.pytest("--opprof-save=main", "-v", plugins=plugins)
    without = project.pytest("--opprof=off", "-v", plugins=plugins)
    assert with_us.exit_code == without.exit_code == 1
    assert with_us.stdout.count("SUBFAILED") == without.stdout.count("SUBFAILED")
    assert counts(with_us.stdout) == counts(without.stdout)
    assert with_us.result("test_it").outcome == "failed"
    assert not project.stored()


@pytest.mark.slow
@KINDS
def test_passed_subtests_are_counted_once(project: Project, plugins: tuple[str, ...], text: str) -> None:
    project.write("test_it.py", text.format(expected="True"))
    with_us = project.pytest("--opprof-save=main", "-v", plugins=plugins)
    without = project.pytest("--opprof=off", "-v", plugins=plugins)
    assert with_us.exit_code == without.exit_code == 0
    assert counts(with_us.stdout) == counts(without.stdout)
    assert with_us.result("test_it").steps == 3


@pytest.mark.slow
@KINDS
def test_a_subtest_that_fails_later_fails_the_measurement(
    project: Project, plugins: tuple[str, ...], text: str
) -> None:
    project.write("test_it.py", text.format(expected="CALLS.append(1) or len(CALLS) < 5"))  # two a call
    project.replace("test_it.py", "import pytest\n", "import pytest\n\nCALLS = []\n")
    session = project.pytest("--opprof-save=main", plugins=plugins)
    assert session.exit_code == 1
    assert session.outcomes == {"test_it": "passed"}
    assert session.result("test_it").measurement.reason.startswith(
        "cannot be repeated: a subtest of call 3 failed. Build the state inside the test"
    )


def counts(stdout: str) -> str:
    """pytest's last line, without its time."""
    return stdout.splitlines()[-1].strip("= ").partition(" in ")[0]
