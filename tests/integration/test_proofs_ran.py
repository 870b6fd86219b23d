"""If a proof that the docs name is skipped, the run fails and names it."""

from pathlib import Path

import pytest

PLUGIN = """
from pathlib import Path
import pytest
from support.proofs.proofs_ran import Proofs

def pytest_configure(config):
    config.pluginmanager.register(Proofs([Path({page!r})]))
"""
TESTS = """
import pytest

def test_shown():
    pass

@pytest.mark.parametrize("n", [1, 2])
def test_in_part(n):
    if n == 1:
        pytest.skip("of one alone")

def test_lost():
    pytest.skip({reason!r})
"""


@pytest.mark.parametrize(
    ("named", "reason", "code"),
    [
        (["test_shown", "test_in_part"], "could not import 'xdist'", pytest.ExitCode.OK),
        (["test_shown", "test_lost"], "could not import 'xdist'", pytest.ExitCode.TESTS_FAILED),
        (["test_lost"], "the tool is not installed", pytest.ExitCode.TESTS_FAILED),
        (["test_lost"], "torch is not installed", pytest.ExitCode.OK),
        (["test_lost"], "only root gives files away", pytest.ExitCode.OK),
        (["test_lost"], "could not import 'torch': No module named 'torch'", pytest.ExitCode.OK),
    ],
)
def test_skipped_proof_fails_the_run(
    named: list[str], reason: str, code: pytest.ExitCode, pytester: pytest.Pytester
) -> None:
    page = Path(pytester.path, "page.md")
    page.write_text("".join(f"| fault | `tests/test_it.py::{name}` |\n" for name in named))
    pytester.makeconftest(PLUGIN.format(page=str(page)))
    (pytester.path / "tests").mkdir()
    (pytester.path / "tests" / "test_it.py").write_text(TESTS.format(reason=reason))
    result = pytester.runpytest("tests", "-p", "no:cacheprovider")
    assert result.ret == code
    told = [line for line in result.outlines if line.startswith("the docs name")]
    lost = ["test_lost"] if "test_lost" in named else []
    assert told == [
        f"the docs name tests/test_it.py::{name} as proof, and it was skipped: {reason}" for name in lost
    ]
